/* version.h - the version of the whole product, in one place. */
#ifndef BASE_VERSION_H
#define BASE_VERSION_H

#define EVALBOARD_VERSION "0.1.0"

#endif
