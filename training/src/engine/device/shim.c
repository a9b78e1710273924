// Plays a GPU for tests: a program that is told over its standard input what a device would be told, and
// runs the kernels of kernels/*.cu, which the test puts where the line below includes them.
//
// The threads of a warp are coroutines that meet at each shuffle, forwards in one warp and backwards in the
// next, so that a kernel whose threads step on each other gives other numbers. A warp has four of them here:
// the kernels count by LANES, and 32 would make tests slow. Memory is malloc's, one piece an allocation, and
// NaN until written; built with the address sanitizer, reading or writing past an end stops the program.

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

static uint32_t word(void) {
    uint32_t value;
    if (fread(&value, sizeof value, 1, stdin) != 1) exit(0);
    return value;
}

static struct memory {
    float *numbers;
    uint32_t length;
} *memories;
static uint32_t known;

static struct memory *memory(uint32_t id) {
    if (id >= known) {
        memories = realloc(memories, (id + 1) * sizeof *memories);
        memset(memories + known, 0, (id + 1 - known) * sizeof *memories);
        known = id + 1;
    }
    return &memories[id];
}

static float *numbers(void) {
    struct memory *of = memory(word());
    uint32_t from = word();
    if (of->numbers == NULL || from > of->length) fail("memory that is not there");
    return of->numbers + from;
}

static void multiply(void) {
    size_t rows = word(), columns = word(), inner = word();
    uint32_t a_transposed = word(), b_transposed = word(), adds = word();
    const float *a = numbers(), *b = numbers();
    float *out = numbers();
    for (size_t row = 0; row < rows; row++) {
        for (size_t column = 0; column < columns; column++) {
            double sum = 0;
            for (size_t i = 0; i < inner; i++) {
                sum += (double)(a_transposed ? a[i * rows + row] : a[row * inner + i]) *
                       (double)(b_transposed ? b[column * inner + i] : b[i * columns + column]);
            }
            float *to = &out[row * columns + column];
            *to = adds ? *to + (float)sum : (float)sum;
        }
    }
}

int main(void) {
    for (;;) {
        uint32_t what = word();
        if (what == 0) { // room
            struct memory *of = memory(word());
            of->length = word();
            of->numbers = malloc(of->length * sizeof(float));
            for (uint32_t i = 0; i < of->length; i++) of->numbers[i] = NAN;
        } else if (what == 1) { // write
            struct memory *of = memory(word());
            if (fread(of->numbers, sizeof(float), of->length, stdin) != of->length) fail("a torn upload");
        } else if (what == 2) { // read
            struct memory *of = memory(word());
            fwrite(of->numbers, sizeof(float), of->length, stdout);
            fflush(stdout);
        } else if (what == 3) { // free
            struct memory *of = memory(word());
            free(of->numbers);
            of->numbers = NULL;
        } else if (what == 4) { // multiply
            multiply();
        } else if (what == 5) { // launch
            running = word();
            uint32_t count = word();
            for (uint32_t i = 0; i < count; i++) {
                uint32_t is_memory = word();
                arguments[i].memory = is_memory ? numbers() : NULL;
                arguments[i].bits = is_memory ? 0 : word();
            }
            launch();
        } else {
            fail("an unknown message");
        }
    }
}
