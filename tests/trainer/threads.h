/*
 * threads.h - participants that are threads of one process, so that strategies can be tested without a launcher, and
 * under the sanitizer of threads. As MPI may do, a message is copied only when it is received: whoever changes what it
 * has sent before it is done, is seen.
 */
#ifndef TESTS_TRAINER_THREADS_H
#define TESTS_TRAINER_THREADS_H

#include "trainer/collective/participants.h"

struct thread_post; /* what `size` threads send each other */

struct thread_post *thread_post_new(int size);
void thread_post_free(struct thread_post *p); /* after all participants have ended */
struct participants *thread_participant(struct thread_post *p, int rank);

#endif
