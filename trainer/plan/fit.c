#include "trainer/plan/fit.h"

#include <math.h>
#include <string.h>

#define DIFFERENCE 1e-5 /* of the logarithm of a parameter */
#define STEP_MOST 2.0   /* of that, at once */
#define GAIN_LEAST 1e-14

enum { ROUNDS = 200 };

struct fit {
    fit_model *model;
    void *context;
    const double *measured;
    int count, points;
    double residual[FIT_POINTS_MOST];
    double slope[FIT_PARAMETERS_MOST][FIT_POINTS_MOST];
};

/* Sets the residuals, and *sum to that of their squares. */
static int look(const struct fit *f, const double *logs, double *residual, double *sum, struct error *e)
{
    double parameters[FIT_PARAMETERS_MOST] = { 0 }, predicted[FIT_POINTS_MOST] = { 0 };
    int rc;

    for (int k = 0; k < f->count; k++)
        parameters[k] = exp(logs[k]);
    if ((rc = f->model(f->context, parameters, predicted, e)) < 0)
        return rc;
    *sum = 0;
    for (int i = 0; i < f->points; i++) {
        residual[i] = log(predicted[i] / f->measured[i]);
        *sum += residual[i] * residual[i];
    }
    return OK;
}

static int find_slopes(struct fit *f, const double *logs, struct error *e)
{
    double there[FIT_PARAMETERS_MOST], moved[FIT_POINTS_MOST], sum;
    int rc = OK;

    for (int k = 0; k < f->count && rc == OK; k++) {
        memcpy(there, logs, sizeof there);
        there[k] += DIFFERENCE;
        rc = look(f, there, moved, &sum, e);
        for (int i = 0; i < f->points; i++)
            f->slope[k][i] = (moved[i] - f->residual[i]) / DIFFERENCE;
    }
    return rc;
}

/* Solves (J'J + damping) step = -J'r. */
static void find_step(const struct fit *f, double damping, double *step)
{
    double a[FIT_PARAMETERS_MOST][FIT_PARAMETERS_MOST + 1];
    const int n = f->count;

    for (int j = 0; j < n; j++) {
        a[j][n] = 0;
        for (int k = 0; k < n; k++)
            a[j][k] = j == k ? damping : 0;
        for (int i = 0; i < f->points; i++) {
            a[j][n] -= f->slope[j][i] * f->residual[i];
            for (int k = 0; k < n; k++)
                a[j][k] += f->slope[j][i] * f->slope[k][i];
        }
    }
    for (int j = 0; j < n; j++) /* symmetric, and positive by the damping: no pivots are needed */
        for (int i = j + 1; i < n; i++) {
            const double factor = a[i][j] / a[j][j];

            for (int k = j; k <= n; k++)
                a[i][k] -= factor * a[j][k];
        }
    for (int j = n - 1; j >= 0; j--) {
        step[j] = a[j][n];
        for (int k = j + 1; k < n; k++)
            step[j] -= a[j][k] * step[k];
        step[j] /= a[j][j];
        step[j] = fmax(-STEP_MOST, fmin(STEP_MOST, step[j]));
    }
}

static int improve(struct fit *f, double *logs, struct error *e)
{
    double sum, damping = 1e-3;
    int rc = look(f, logs, f->residual, &sum, e);

    for (int round = 0; round < ROUNDS && rc == OK && sum > GAIN_LEAST && damping < 1e12; round++) {
        double step[FIT_PARAMETERS_MOST], there[FIT_PARAMETERS_MOST], residual[FIT_POINTS_MOST], better;

        if ((rc = find_slopes(f, logs, e)) < 0)
            break;
        find_step(f, damping, step);
        for (int k = 0; k < f->count; k++)
            there[k] = logs[k] + step[k];
        if ((rc = look(f, there, residual, &better, e)) < 0)
            break;
        if (better < sum) {
            memcpy(logs, there, (size_t)f->count * sizeof *logs);
            memcpy(f->residual, residual, sizeof residual);
            sum = better;
            damping = fmax(damping / 10, 1e-12);
        } else {
            damping *= 10;
        }
    }
    return rc;
}

int fit_least_squares(double *parameters, int count, fit_model *model, void *context, const double *measured,
                      int points, struct error *e)
{
    struct fit f = { .model = model, .context = context, .measured = measured, .count = count, .points = points };
    double logs[FIT_PARAMETERS_MOST];
    int rc;

    if (count > points || count > FIT_PARAMETERS_MOST || points > FIT_POINTS_MOST)
        return error_set(e, ERR_ARG, "%d parameters cannot be found from %d measurements", count, points);
    for (int k = 0; k < count; k++)
        logs[k] = log(parameters[k]);
    rc = improve(&f, logs, e);
    for (int k = 0; k < count && rc == OK; k++)
        parameters[k] = exp(logs[k]);
    return rc;
}
