/*
 * late_library.h - a library that is loaded when something of it is to be called: who never comes to that starts
 * sooner, and runs where the library is missing.
 */
#ifndef BASE_LATE_LIBRARY_H
#define BASE_LATE_LIBRARY_H

#include "base/error.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

/*
 * Finds `count` functions by their names, in the library or in those it stands on, into `functions`: memory of as many
 * pointers. What is loaded stays, for it may have threads and tables that do not survive being unloaded.
 * ERR_IO: the sentence says what is missing, and of which file.
 */
static inline int late_library_load(const char *soname, const char *const *names, size_t count, void *functions,
                                    struct error *e)
{
    void *handle = dlopen(soname, RTLD_LAZY | RTLD_LOCAL), *found;

    for (size_t i = 0; i < count; i++) {
        if (!handle || !(found = dlsym(handle, names[i])))
            return error_set(e, ERR_IO, "%s", dlerror());
        memcpy((char *)functions + i * sizeof found, &found, sizeof found);
    }
    return OK;
}

#endif
