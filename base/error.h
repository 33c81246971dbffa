/*
 * error.h - how all modules report errors.
 *
 * A function returns OK (0) or a negative ERR_* for the program, and puts a full sentence for the user into a struct
 * error that the caller owns; every function accepts NULL for it. The first error counts: clean-up code passes NULL.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

enum error_code {
    OK = 0,
    ERR_IO = -1,      /* the operating system refused: missing, unreadable, full */
    ERR_CORRUPT = -2, /* bytes from outside break their format */
    ERR_NOMEM = -3,   /* out of memory, or a limit on it */
    ERR_ARG = -4,     /* the caller or the user asked for something impossible */
    ERR_PEER = -5,    /* another rank failed, left, or did not answer in time */
};

struct error {
    int code;          /* an enum error_code; OK: no error */
    int system;        /* errno if the operating system was the cause, else 0 */
    char message[480]; /* one line without a newline; "": no error */
};

/* Sets e (unless NULL) to code and the formatted sentence; returns code, so that `return error_set(...)` works. */
int error_set(struct error *e, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The same with ERR_IO (ERR_NOMEM for ENOMEM); stores errno, and appends ": " and its text. */
int error_system(struct error *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same with ERR_NOMEM and "WHERE: no memory PURPOSE", where PURPOSE is "for 3 runs" or "to list it", and where is a
 * file or a run, or NULL. */
int error_memory(struct error *e, const char *where, const char *purpose, ...) __attribute__((format(printf, 3, 4)));

/* Copies the error of another struct, unless that is OK; returns its code. */
int error_copy(struct error *e, const struct error *from);

/* 1: the process or the machine lacked a resource (memory, descriptors, processes): temporary, and no fault of the
 * files in question. */
int error_is_lack(const struct error *e);

/* 1: reading failed in a way that often passes, as on a network file system (ESTALE, EIO, EACCES, ETIMEDOUT and so on):
 * it says nothing about the files in question. */
int error_may_pass(const struct error *e);

/* Puts "context: " before the existing sentence. Returns e->code (OK if e is NULL). */
int error_prefix(struct error *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
