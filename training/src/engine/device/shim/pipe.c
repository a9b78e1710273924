// A GPU as a program: told over its standard input what a device would be told.
//
// Memory is malloc's, one piece an allocation, and NaN until written; built with the address sanitizer,
// reading or writing past an end stops the program.

#include "threads.h"

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
