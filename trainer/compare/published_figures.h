/*
 * published_figures.h - the figures of the comparisons that others have published. Their source: the specification of
 * the seed models, sections 2 to 6.
 */
#ifndef TRAINER_COMPARE_PUBLISHED_FIGURES_H
#define TRAINER_COMPARE_PUBLISHED_FIGURES_H

#include <stdint.h>

/* Parallax, three workers: how far both came, and their precision. The steps stand for global_step/s, as if both had
 * had the same time, which the document does not say. */
#define PARALLAX_MPI_STEPS 3500.0
#define PARALLAX_PS_STEPS 2600.0
#define PARALLAX_MPI_PRECISION 0.796
#define PARALLAX_PS_PRECISION 0.774
enum { PARALLAX_WORKERS = 3 };

/* im2txt on 2 workers, mean of steps 101 to 200. */
static const struct published_speed {
    const char *name, *ours; /* the strategy that does the same */
    double steps_per_second;
} published_im2txt[] = {
    { "TensorFlow", "ps", 0.157594 },
    { "Horovod", "mpi", 0.150986 },
    { "Parallax", "hybrid", 0.137008 },
};
enum { IM2TXT_COUNT = sizeof published_im2txt / sizeof *published_im2txt, IM2TXT_WORKERS = 2 };

/* The LSTM on MNIST: test accuracy of 3 workers with 32 images each, synchronous. */
static const struct published_accuracy {
    int64_t step;
    double accuracy;
} published_lstm[] = { { 50, 0.43 }, { 100, 0.63 }, { 150, 0.73 }, { 200, 0.77 }, { 250, 0.81 } };
enum { LSTM_STEPS = sizeof published_lstm / sizeof *published_lstm, LSTM_WORKERS = 3 };

/* ResNet-50, 8 devices a machine: global steps a second on 1, 2, 3 machines, and of threads on one. */
static const double published_collective[] = { 1.06, 1.98, 2.925 };
#define MIRRORED_ONE_MACHINE 1.26
enum { COLLECTIVE_MOST = sizeof published_collective / sizeof *published_collective };

/* A CNN on MNIST, seconds an epoch: one set of weights, or a copy on each device and an all-sum. */
static const struct published_epoch {
    int64_t workers;
    double shared, copied;
} published_epochs[] = { { 1, 7.234, 7.348 }, { 2, 3.902, 3.877 }, { 4, 2.311, 2.208 }, { 8, 2.173, 1.448 } };
enum { EPOCHS_COUNT = sizeof published_epochs / sizeof *published_epochs };

#endif
