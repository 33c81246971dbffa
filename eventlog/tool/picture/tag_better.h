/* tag_better.h - which way the values of a series get better, by the words that people put into tags. Pure. */
#ifndef EVENTLOG_TOOL_PICTURE_TAG_BETTER_H
#define EVENTLOG_TOOL_PICTURE_TAG_BETTER_H

/* -1: less is better ("val/loss"), 1: more is ("top5_accuracy", "images/sec"), 0: neither, or nobody can tell ("lr",
 * "kl_coef", "memory"). The last word of the tag that says something counts: "loss/accuracy" is an accuracy. */
int tag_better(const char *tag);

#endif
