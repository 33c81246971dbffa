/*
 * fit.h - finds the parameters of a model from measured points: the least squares of relative differences
 * (Levenberg-Marquardt, derivatives by differences). Parameters and values are positive; steps are factors. Pure.
 */
#ifndef TRAINER_PLAN_FIT_H
#define TRAINER_PLAN_FIT_H

#include "base/error.h"

enum { FIT_PARAMETERS_MOST = 3, FIT_POINTS_MOST = 64 };

/* Sets predicted (points) from the parameters. An error ends the fit. */
typedef int fit_model(void *context, const double *parameters, double *predicted, struct error *e);

/* Improves `parameters`, from which it begins, until nothing is gained any more. A parameter that changes nothing stays
 * about where it is. ERR_ARG: more parameters than points, or too many of one. */
int fit_least_squares(double *parameters, int count, fit_model *model, void *context, const double *measured,
                      int points, struct error *e);

#endif
