// Plays a GPU's threads for tests: compiles the kernels of kernels/*.cu, which the test puts where the
// line below includes them, and launches them one thread after another.
//
// The threads of a warp are coroutines that meet at each shuffle, forwards in one warp and backwards in the
// next, so that a kernel whose threads step on each other gives other numbers. A warp has four of them here:
// the kernels count by LANES, and 32 would make tests slow.

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define KERNEL static void
#define DEVICE static
#define BLOCKS 2u
#define THREADS 64u
#define LANES 4u
#define STACK 16384

struct place {
    unsigned x;
};
static struct place threadIdx, blockIdx;
static const struct place blockDim = {THREADS}, gridDim = {BLOCKS};

static ucontext_t scheduler, fibers[LANES];
static char stacks[LANES][STACK] __attribute__((aligned(64)));
static unsigned current, turns[LANES], done[LANES];
static float exchange[2][LANES];

static float __shfl_xor_sync(unsigned mask, float x, unsigned far) {
    unsigned lane = current, turn = turns[lane]++ % 2;
    (void)mask;
    exchange[turn][lane] = x;
    swapcontext(&fibers[lane], &scheduler);
    return exchange[turn][lane ^ far];
}

#include "kernels.inc"

struct argument {
    void *memory;
    uint32_t bits;
};

static float real(uint32_t bits) {
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

#include "dispatch.inc"

static unsigned running;
static struct argument arguments[32];

static void thread(void) {
    dispatch(running, arguments);
    done[current] = 1;
    swapcontext(&fibers[current], &scheduler);
}

static void fail(const char *what) {
    fprintf(stderr, "shim: %s\n", what);
    exit(1);
}

static void warp(unsigned first, int backwards) {
    unsigned left = LANES;
    for (unsigned lane = 0; lane < LANES; lane++) {
        turns[lane] = done[lane] = 0;
        getcontext(&fibers[lane]);
        fibers[lane].uc_stack.ss_sp = stacks[lane];
        fibers[lane].uc_stack.ss_size = STACK;
        fibers[lane].uc_link = &scheduler;
        makecontext(&fibers[lane], thread, 0);
    }
    while (left > 0) {
        for (unsigned at = 0; at < LANES; at++) {
            unsigned lane = backwards ? LANES - 1 - at : at;
            if (done[lane]) fail("a thread of a warp ended before a shuffle that others wait at");
            current = lane;
            threadIdx.x = first + lane;
            swapcontext(&scheduler, &fibers[lane]);
            left -= done[lane];
        }
    }
}

static void launch(void) {
    for (blockIdx.x = 0; blockIdx.x < BLOCKS; blockIdx.x++) {
        if (shuffles[running]) {
            for (unsigned first = 0; first < THREADS; first += LANES) warp(first, first / LANES % 2);
        } else {
            for (threadIdx.x = 0; threadIdx.x < THREADS; threadIdx.x++) dispatch(running, arguments);
        }
    }
}
