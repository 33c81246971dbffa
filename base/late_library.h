/*
 * late_library.h - loads a library when it is first needed: programs that do not need it start sooner, and run without
 * it.
 */
#ifndef BASE_LATE_LIBRARY_H
#define BASE_LATE_LIBRARY_H

#include "base/error.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

/*
 * Finds `count` functions by name, in the library or its dependencies, and stores them in `functions`, memory for as
 * many pointers. The library is never unloaded: its threads and tables might not survive that. ERR_IO: the sentence
 * says what is missing, and from which file.
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
