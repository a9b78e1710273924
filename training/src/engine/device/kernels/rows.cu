// Rows and numbers: taken, put, summed, dropped, activated.

// to[i] (+)= from[rows[i]]
KERNEL take_rows(float *to, const float *from, const unsigned *rows, unsigned count, unsigned width,
                 unsigned adds) {
    EACH(i, count * width) {
        float value = from[rows[i / width] * width + i % width];
        to[i] = adds ? to[i] + value : value;
    }
}

// to[rows[i]] (+)= from[i]; no row twice.
KERNEL put_rows(float *to, const float *from, const unsigned *rows, unsigned count, unsigned width,
                unsigned adds) {
    EACH(i, count * width) {
        float *into = &to[rows[i / width] * width + i % width];
        *into = adds ? *into + from[i] : from[i];
    }
}

// to[targets[k] …] += the sum of from[sources[i] …] over the sources of k; no target twice.
KERNEL gather(float *to, const float *from, const unsigned *sources, const unsigned *starts,
              const unsigned *targets, unsigned segments, unsigned width) {
    EACH(i, segments * width) {
        unsigned segment = i / width, lane = i % width;
        float sum = 0.0f;
        for (unsigned at = starts[segment]; at < starts[segment + 1]; at++) sum += from[sources[at] + lane];
        to[targets[segment] + lane] += sum;
    }
}

KERNEL scale_rows(float *values, const float *factors, unsigned rows, unsigned width) {
    EACH(i, rows * width) values[i] *= factors[i / width];
}

KERNEL add(float *to, const float *from, unsigned count) {
    EACH(i, count) to[i] += from[i];
}

KERNEL drop(float *values, const unsigned *keys, const unsigned *places, unsigned rows, unsigned width,
            unsigned node, unsigned threshold, float kept) {
    EACH(i, rows * width) {
        unsigned row = i / width;
        values[i] *= kept_at(keys[row], places[row] * width + i % width, node, threshold, kept);
    }
}

// Sums of the columns over `piece` rows at a time, of a or of a times b.
KERNEL column_parts(float *parts, const float *a, const float *b, unsigned rows, unsigned width,
                    unsigned piece, unsigned multiplied) {
    unsigned pieces = (rows + piece - 1) / piece;
    EACH(i, pieces * width) {
        unsigned first = i / width * piece, lane = i % width;
        unsigned end = first + piece < rows ? first + piece : rows;
        float sum = 0.0f;
        for (unsigned row = first; row < end; row++) {
            unsigned at = row * width + lane;
            sum += multiplied ? a[at] * b[at] : a[at];
        }
        parts[i] = sum;
    }
}

KERNEL column_total(float *to, const float *parts, unsigned pieces, unsigned width) {
    EACH(lane, width) {
        float sum = 0.0f;
        for (unsigned piece = 0; piece < pieces; piece++) sum += parts[piece * width + lane];
        to[lane] += sum;
    }
}

KERNEL add_bias(float *value, const float *bias, unsigned rows, unsigned width) {
    EACH(i, rows * width) value[i] += bias[i % width];
}

KERNEL add_bias_relu(float *value, const float *bias, unsigned rows, unsigned width) {
    EACH(i, rows * width) value[i] = fmaxf(value[i] + bias[i % width], 0.0f);
}

DEVICE float normal_cdf(float x) { return 0.5f * (1.0f + erff(x * 0.70710678f)); }

KERNEL add_bias_gelu(float *value, float *before, const float *bias, unsigned rows, unsigned width) {
    EACH(i, rows * width) {
        float x = value[i] + bias[i % width];
        before[i] = x;
        value[i] = x * normal_cdf(x);
    }
}

KERNEL unrelu(float *gradient, const float *value, unsigned count) {
    EACH(i, count) if (value[i] <= 0.0f) gradient[i] = 0.0f;
}

KERNEL ungelu(float *gradient, const float *before, unsigned count) {
    EACH(i, count) {
        float x = before[i];
        gradient[i] *= normal_cdf(x) + x * expf(-0.5f * x * x) * 0.3989423f;
    }
}

KERNEL add_relu(float *value, const float *x, const float *y, const unsigned *serving, unsigned rows,
                unsigned width) {
    EACH(i, rows * width) value[i] = fmaxf(x[i] + y[serving[i / width] * width + i % width], 0.0f);
}

// The gradient of rows that served many, from those that they served: dropped as they were.
KERNEL unserve(float *to, const float *gradient, const unsigned *starts, const unsigned *keys,
               const unsigned *places, unsigned rows, unsigned width, unsigned node, unsigned threshold,
               float kept) {
    EACH(i, rows * width) {
        unsigned lane = i % width;
        float sum = to[i];
        for (unsigned row = starts[i / width]; row < starts[i / width + 1]; row++) {
            float factor = kept_at(keys[row], places[row] * width + lane, node, threshold, kept);
            sum += factor * gradient[row * width + lane];
        }
        to[i] = sum;
    }
}

// value += share × state, row by row.
KERNEL mix(float *value, const float *state, const float *shares, unsigned rows, unsigned width) {
    EACH(i, rows * width) value[i] += shares[i / width] * state[i];
}

// Each row's share's gradient.
KERNEL unmix(float *shares, const float *gradient, const float *state, unsigned rows, unsigned width) {
    EACH_ROW(row, rows) {
        float sum = 0.0f;
        EACH_LANE(i, width) sum += gradient[row * width + i] * state[row * width + i];
        sum = row_sum(sum);
        if (threadIdx.x % LANES == 0) shares[row] = sum;
    }
}
