#include "eventlog/tool/picture/tag_better.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

enum { WORD_MOST = 24, ENDING_LEAST = 4 };

/* The meaning of words. Those of at least ENDING_LEAST letters also count at the end of another word: "trainloss". */
static const struct {
    int better;
    const char *words;
} meanings[] = {
    { -1, " loss losses error errors err perplexity ppl nll bpc kl divergence crossentropy xent bce rmse mse mae mape "
          "wer cer fid lpips brier ece cost regret latency seconds staleness lag " },
    { 1, " accuracy acc precision recall f1 fscore auc auroc auprc map iou miou dice jaccard bleu rouge meteor chrf "
         "psnr ssim reward rewards return returns score success r2 top1 top5 mrr ndcg kappa mcc sensitivity "
         "specificity throughput fps " },
    { 0, " lr scale coef coeff coefficient weight weights target threshold std count " },
};

static int stands_in(const char *words, const char *word)
{
    char padded[WORD_MOST + 3] = " ";

    strcat(strcat(padded, word), " ");
    return strstr(words, padded) != NULL;
}

/* Takes the next word of letters, in lower case, and digits off *at; parts: a capital after a small letter begins a new
 * word. 0: no more. */
static int next_word(const char **at, int parts, char *word)
{
    size_t n = 0;

    while (**at && !isalnum((unsigned char)**at))
        ++*at;
    while (isalnum((unsigned char)**at) &&
           !(parts && n && isupper((unsigned char)**at) && islower((unsigned char)(*at)[-1]))) {
        if (n < WORD_MOST)
            word[n++] = (char)tolower((unsigned char)**at);
        ++*at;
    }
    word[n] = '\0';
    return n > 0;
}

/* 1 and *better if the word is known. */
static int meaning(const char *word, int *better)
{
    char stem[WORD_MOST + 1];
    size_t n;

    strcpy(stem, word);
    for (n = strlen(stem); n && isdigit((unsigned char)stem[n - 1]) && !stands_in(meanings[1].words, stem);)
        stem[--n] = '\0'; /* "loss2", but not "f1" */
    for (size_t from = 0; n && (!from || n - from >= ENDING_LEAST); from++)
        for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
            if (stands_in(meanings[i].words, stem + from)) {
                *better = meanings[i].better;
                return 1;
            }
    return 0;
}

int tag_better(const char *tag)
{
    char word[WORD_MOST + 1], part[WORD_MOST + 1], before[WORD_MOST + 1] = "";
    int better = 0;

    for (const char *at = tag, *inner = tag; next_word(&at, 0, word); strcpy(before, word), inner = at) {
        size_t n = strlen(word);

        if ((!strcmp(word, "s") || !strcmp(word, "sec") || !strcmp(word, "second")) &&
            (!strcmp(before, "per") || (at > tag + n && at[-(ptrdiff_t)n - 1] == '/')))
            better = 1; /* something per second */
        else if (!strcmp(word, "entropy") && !strcmp(before, "cross"))
            better = -1;
        else if (!meaning(word, &better)) /* "mAP" as it is, "valAcc" by its parts */
            while (inner < at && next_word(&inner, 1, part))
                meaning(part, &better);
    }
    return better;
}
