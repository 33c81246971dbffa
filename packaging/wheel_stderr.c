/*
 * wheel_stderr.c - the stream that libpng's own error handler would print to, in the shared library of a wheel: none. Our
 * code sets handlers or uses the simplified interface, so that handler never runs.
 */
#include <stdio.h>

extern FILE *__wrap_stderr;
FILE *__wrap_stderr;
