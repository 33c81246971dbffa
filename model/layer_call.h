/*
 * layer_call.h - a builder call (network_builder.h) as data: what a line of a model file says, and what a network
 * remembers of the calls that made it. Each kind of layer has one struct layer_call beside its code, and one row in
 * layers/layers.h; the reader of model files, the printer and `trainer describe` know layers from there alone.
 */
#ifndef MODEL_LAYER_CALL_H
#define MODEL_LAYER_CALL_H

#include <stddef.h>
#include <stdint.h>

struct network_builder;

enum { CALL_PARAMETERS_MAX = 6, CALL_NUMBERS = 5, CALL_NAME_MAX = 128, CALL_INPUTS_MAX = 8 };

enum parameter_kind {
    PARAMETER_INTEGER, /* within [minimum, maximum]: v[0] */
    PARAMETER_REAL,    /* the same */
    PARAMETER_FLAG,    /* the word alone: v[0] is 1 */
    PARAMETER_WORD,    /* one of `choices`, separated by '|': v[0] is its number */
    PARAMETER_SIZE,    /* "3", or "3x1": v[0] is the height, v[1] the width; 0: the layer's choice */
    PARAMETER_PADDING, /* "valid", "same", or "top,bottom,left,right": v[0] is enum padding, v[1..4] */
    PARAMETER_INITIAL, /* "normal(0.1)", "glorot": v[0] is enum initial_kind, v[1] its number */
};

struct argument {
    double v[CALL_NUMBERS];
};

struct call_parameter {
    const char *name;
    enum parameter_kind kind;
    const char *choices;
    double minimum, maximum;
    const char *standard; /* what it is if a line does not say it, as in a line; NULL: it must be said */
    const char *help;     /* one line */
};

struct layer_call {
    const char *name, *help;
    const char *named;             /* what the name after the layer's is: "kernel", "scope"; NULL: there is none */
    int inputs_least, inputs_most; /* values */
    struct call_parameter parameters[CALL_PARAMETERS_MAX + 1]; /* the last has no name */
    /* Makes the call. Returns the value; VALUE_NONE after a mistake, and where there is none. */
    int (*build)(struct network_builder *b, const int *in, int in_count, const char *name, const struct argument *a);
};

struct network_call {
    const struct layer_call *kind;
    char name[CALL_NAME_MAX];
    struct argument arguments[CALL_PARAMETERS_MAX];
    int inputs[CALL_INPUTS_MAX], input_count; /* values; 0 is the network's input */
    int out;                                  /* value; -1: none */
    int height, width, channels;              /* of out */
    size_t parameters, statistics;            /* that it added */
    double multiplications;                   /* multiply-adds of one sample, forward, of kernels alone */
};

#endif
