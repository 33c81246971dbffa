#include "evaluator/files/file_stamp.h"

uint64_t file_stamp_mix(uint64_t h, uint64_t x)
{
    h ^= x + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
    return h * 0xff51afd7ed558ccdu;
}

static uint64_t mix_time(uint64_t h, const struct timespec *t)
{
    return file_stamp_mix(file_stamp_mix(h, (uint64_t)t->tv_sec), (uint64_t)t->tv_nsec);
}

uint64_t file_stamp(const struct stat *st)
{
    uint64_t h = file_stamp_mix((uint64_t)st->st_dev, (uint64_t)st->st_ino);

    return mix_time(mix_time(file_stamp_mix(h, (uint64_t)st->st_size), &st->st_mtim), &st->st_ctim);
}

static double seconds(const struct timespec *t)
{
    return (double)t->tv_sec + (double)t->tv_nsec * 1e-9;
}

double file_stamp_changed(const struct stat *st)
{
    return seconds(&st->st_ctim);
}

double file_stamp_modified(const struct stat *st)
{
    return seconds(&st->st_mtim);
}
