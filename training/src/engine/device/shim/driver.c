// A GPU as its libraries: as much of the driver, NVRTC and cuBLAS as cudarc calls, with the GPU's memory in
// the process itself. A test loads it under their names, so that what is passed to them is checked where
// there is none: arguments of kernels by their kinds, matrices counted by columns, the order of calls.
//
// Instead of compiling, it takes the kernels that it was built with. Unknown calls are missing symbols, and
// cudarc says which.

#include "threads.h"

enum { SUCCESS = 0, INVALID_VALUE = 1, NOT_FOUND = 500 };
enum { MAJOR = 75, MINOR = 76, MEMORY_POOLS = 115 };

static void *context;

int cuInit(unsigned flags) { return flags == 0 ? SUCCESS : INVALID_VALUE; }

int cuDeviceGet(int *device, int ordinal) {
    *device = ordinal;
    return ordinal == 0 ? SUCCESS : INVALID_VALUE;
}

int cuDeviceGetName(char *name, int length, int device) {
    snprintf(name, (size_t)length, "rehearsal %d", device);
    return SUCCESS;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    *value = attribute == MAJOR ? 9 : attribute == MINOR ? 0 : attribute == MEMORY_POOLS;
    return device == 0 ? SUCCESS : INVALID_VALUE;
}

int cuDevicePrimaryCtxRetain(void **to, int device) {
    *to = &context;
    return device == 0 ? SUCCESS : INVALID_VALUE;
}

int cuDevicePrimaryCtxRelease_v2(int device) { return device == 0 ? SUCCESS : INVALID_VALUE; }

int cuCtxGetCurrent(void **to) {
    *to = context;
    return SUCCESS;
}

int cuCtxSetCurrent(void *to) {
    context = to;
    return SUCCESS;
}

int cuDeviceGetDefaultMemPool(void **pool, int device) {
    *pool = &context;
    return device == 0 ? SUCCESS : INVALID_VALUE;
}

int cuMemPoolSetAttribute(void *pool, int attribute, void *value) {
    enum { RELEASE_THRESHOLD = 4 };
    uint64_t bytes = *(uint64_t *)value;
    return pool && attribute == RELEASE_THRESHOLD && bytes == UINT64_MAX ? SUCCESS : INVALID_VALUE;
}

int cuMemAllocAsync(uint64_t *to, size_t bytes, void *stream) {
    void *memory = malloc(bytes);
    memset(memory, 0xff, bytes); // NaN
    *to = (uint64_t)(uintptr_t)memory;
    return bytes > 0 && !stream ? SUCCESS : INVALID_VALUE;
}

int cuMemFreeAsync(uint64_t memory, void *stream) {
    free((void *)(uintptr_t)memory);
    return stream ? INVALID_VALUE : SUCCESS;
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream) {
    memcpy((void *)(uintptr_t)to, from, bytes);
    return stream ? INVALID_VALUE : SUCCESS;
}

int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream) {
    memcpy(to, (void *)(uintptr_t)from, bytes);
    return stream ? INVALID_VALUE : SUCCESS;
}

int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void *stream) {
    memset((void *)(uintptr_t)to, value, bytes);
    return stream ? INVALID_VALUE : SUCCESS;
}

int cuStreamSynchronize(void *stream) { return stream ? INVALID_VALUE : SUCCESS; }

int cuModuleLoadData(void **module, const char *binary) {
    *module = &context;
    return strcmp(binary, "kernels") == 0 ? SUCCESS : INVALID_VALUE;
}

int cuModuleUnload(void *module) { return module == &context ? SUCCESS : INVALID_VALUE; }

// A function is the place of its name.
int cuModuleGetFunction(void **function, void *module, const char *name) {
    for (size_t place = 0; place < sizeof names / sizeof *names; place++) {
        if (strcmp(names[place], name) == 0) {
            *function = (void *)&names[place];
            return module == &context ? SUCCESS : INVALID_VALUE;
        }
    }
    return NOT_FOUND;
}

int cuLaunchKernel(void *function, unsigned blocks, unsigned blocks_y, unsigned blocks_z, unsigned threads,
                   unsigned threads_y, unsigned threads_z, unsigned shared, void *stream, void **passed,
                   void **more) {
    if (blocks_y != 1 || blocks_z != 1 || threads_y != 1 || threads_z != 1 || shared || stream || more ||
        blocks == 0 || threads % 32 != 0) {
        return INVALID_VALUE;
    }
    running = (unsigned)((const char *const *)function - names);
    for (size_t at = 0; kinds[running][at]; at++) {
        int is_memory = kinds[running][at] == 'm';
        arguments[at].memory = is_memory ? *(void **)passed[at] : NULL;
        arguments[at].bits = is_memory ? 0 : *(uint32_t *)passed[at];
    }
    launch();
    return SUCCESS;
}

int cuGetErrorName(int error, const char **name) {
    *name = error == NOT_FOUND ? "NOT_FOUND" : "INVALID_VALUE";
    return SUCCESS;
}

int cuGetErrorString(int error, const char **text) { return cuGetErrorName(error, text); }

int nvrtcCreateProgram(void **program, const char *source, const char *name, int headers,
                       const char *const *contents, const char *const *header_names) {
    *program = &context;
    int whole = strstr(source, "#define LANES 32u") && strstr(source, "KERNEL adamw_rows(") && name;
    return whole && headers == 0 && !contents && !header_names ? SUCCESS : INVALID_VALUE;
}

int nvrtcCompileProgram(void *program, int count, const char *const *options) {
    int right = count == 1 && strcmp(options[0], "--gpu-architecture=sm_90") == 0;
    return program == &context && right ? SUCCESS : INVALID_VALUE;
}

int nvrtcGetCUBINSize(void *program, size_t *size) {
    *size = sizeof "kernels";
    return program == &context ? SUCCESS : INVALID_VALUE;
}

int nvrtcGetCUBIN(void *program, char *binary) {
    strcpy(binary, "kernels");
    return program == &context ? SUCCESS : INVALID_VALUE;
}

int nvrtcDestroyProgram(void **program) { return *program == &context ? SUCCESS : INVALID_VALUE; }

int cublasCreate_v2(void **handle) {
    *handle = &context;
    return SUCCESS;
}

int cublasDestroy_v2(void *handle) { return handle == &context ? SUCCESS : INVALID_VALUE; }

int cublasSetStream_v2(void *handle, void *stream) {
    return handle == &context && !stream ? SUCCESS : INVALID_VALUE;
}

// out = alpha op(a) op(b) + beta out, all by columns.
int cublasSgemm_v2(void *handle, int a_transposed, int b_transposed, int rows, int columns, int inner,
                   const float *alpha, const float *a, int a_step, const float *b, int b_step,
                   const float *beta, float *out, int out_step) {
    if (handle != &context || a_step < (a_transposed ? inner : rows) ||
        b_step < (b_transposed ? columns : inner) || out_step < rows) {
        return INVALID_VALUE;
    }
    for (long column = 0; column < columns; column++) {
        for (long row = 0; row < rows; row++) {
            double sum = 0;
            for (long i = 0; i < inner; i++) {
                sum += (double)(a_transposed ? a[i + row * a_step] : a[row + i * a_step]) *
                       (double)(b_transposed ? b[column + i * b_step] : b[i + column * b_step]);
            }
            float *to = &out[row + column * out_step];
            // What is there is not read where it does not count: it may be NaN.
            *to = *alpha * (float)sum + (*beta == 0.0f ? 0.0f : *beta * *to);
        }
    }
    return SUCCESS;
}
