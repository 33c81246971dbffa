"""BLEU of a corpus by Papineni's definition (2002, "BLEU: a method for automatic evaluation of machine translation"), in
fractions, without smoothing; and exact match. Sentences are lists of words of any kind.
"""
import collections
import fractions
import math


def grams(sentence, n):
    return collections.Counter(tuple(sentence[i:i + n]) for i in range(len(sentence) - n + 1))


def precision(told, references, n):
    """The modified n-gram precision: clipped counts over all counts."""
    clipped = everything = 0
    for sentence, people in zip(told, references):
        for gram, count in grams(sentence, n).items():
            clipped += min(count, max(grams(one, n)[gram] for one in people))
            everything += count
    return fractions.Fraction(clipped, everything) if everything else fractions.Fraction(0)


def brevity(told, references):
    """r: of each sentence the reference nearest in length, the shorter of two."""
    c = sum(map(len, told))
    r = sum(min((abs(len(one) - len(sentence)), len(one)) for one in people)[1] for sentence, people in zip(told, references))
    return 1.0 if c > r else math.exp(1 - r / c) if c else 0.0


def bleu(told, references, n):
    precisions = [precision(told, references, k) for k in range(1, n + 1)]
    if not all(precisions):
        return 0.0
    return brevity(told, references) * math.exp(sum(math.log(p) for p in precisions) / n)


def scores(told, references):
    """Under the names that the evaluator gives them."""
    found = {f"bleu_{n}": bleu(told, references, n) for n in range(1, 5)}
    exact = sum(sentence in people for sentence, people in zip(told, references))
    return {**found, "exact_match": exact / len(told)}
