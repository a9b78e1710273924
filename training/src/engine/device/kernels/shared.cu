// What the kernels share. The files of this folder are one program, in plain C, so that two compilers take
// it: NVRTC for GPUs, and in tests the machine's C compiler under a shim that plays the threads. Each of
// the two defines KERNEL, DEVICE and LANES.
//
// Everything is row-major. A kernel says what it does for each number or each row, and is right for any
// number of threads (a multiple of LANES). There are no atomics: whoever writes a number is its only
// writer, and sums run in a fixed order, so the same input gives the same bits.

#define EACH(i, count) for (unsigned i = thread_number(); i < (count); i += thread_count())
// One row for LANES neighbouring threads, which add up by row_sum.
#define EACH_ROW(row, rows) \
    for (unsigned row = thread_number() / LANES; row < (rows); row += thread_count() / LANES)
#define EACH_LANE(i, width) for (unsigned i = threadIdx.x % LANES; i < (width); i += LANES)

DEVICE unsigned thread_number(void) { return blockIdx.x * blockDim.x + threadIdx.x; }

DEVICE unsigned thread_count(void) { return gridDim.x * blockDim.x; }

DEVICE float row_sum(float x) {
    for (unsigned far = LANES / 2; far > 0; far /= 2) x += __shfl_xor_sync(0xffffffffu, x, far);
    return x;
}

// What dropout multiplies a number with: engine::dropout's choice, bit for bit. A row's key and place are
// those of the shard that it would be in on a CPU.
DEVICE float kept_at(unsigned row_key, unsigned place, unsigned node, unsigned threshold, float kept) {
    unsigned hash = place * 0x9e3779b1u ^ (row_key ^ node * 0x85ebca6bu) * 0xc2b2ae35u;
    hash = (hash ^ (hash >> 16)) * 0x7feb352du;
    hash = (hash ^ (hash >> 15)) * 0x846ca68bu;
    hash ^= hash >> 16;
    return hash >= threshold ? kept : 0.0f;
}
