/* tag_better.h - guesses from the words in a tag whether lower or higher values are better. Pure. */
#ifndef EVENTLOG_TOOL_PICTURE_TAG_BETTER_H
#define EVENTLOG_TOOL_PICTURE_TAG_BETTER_H

/* -1: lower is better ("val/loss"), 1: higher is ("top5_accuracy", "images/sec"), 0: neither, or unknown ("lr",
 * "kl_coef", "memory"). The last known word of the tag counts: "loss/accuracy" is an accuracy. */
int tag_better(const char *tag);

#endif
