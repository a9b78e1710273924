// Residual connection, dropout and layer normalisation.

// The normalised x + dropout(y), and one over each row's standard deviation.
KERNEL normalise(float *normal, float *inverse, const float *x, const float *y, const unsigned *serving,
                 const unsigned *keys, const unsigned *places, unsigned rows, unsigned width, unsigned node,
                 unsigned threshold, float kept) {
    EACH_ROW(row, rows) {
        const float *from = y + serving[row] * width;
        float *to = normal + row * width;
        float sum = 0.0f;
        EACH_LANE(i, width) {
            float factor = kept_at(keys[row], places[row] * width + i, node, threshold, kept);
            to[i] = x[row * width + i] + factor * from[i];
            sum += to[i];
        }
        float mean = row_sum(sum) / (float)width;
        float squares = 0.0f;
        EACH_LANE(i, width) {
            to[i] -= mean;
            squares += to[i] * to[i];
        }
        float by = 1.0f / sqrtf(row_sum(squares) / (float)width + 1e-5f);
        EACH_LANE(i, width) to[i] *= by;
        if (threadIdx.x % LANES == 0) inverse[row] = by;
    }
}

KERNEL rescale(float *value, const float *normal, const float *scale, const float *shift, unsigned rows,
               unsigned width) {
    EACH(i, rows * width) value[i] = normal[i] * scale[i % width] + shift[i % width];
}

// The gradient of x in place of the value's: through scale, where there is one, and normalisation.
KERNEL unnormalise(float *gradient, const float *normal, const float *inverse, const float *scale,
                   unsigned scaled, unsigned rows, unsigned width) {
    EACH_ROW(row, rows) {
        float *to = gradient + row * width;
        const float *along = normal + row * width;
        float sum = 0.0f, product = 0.0f;
        EACH_LANE(i, width) {
            if (scaled) to[i] *= scale[i];
            sum += to[i];
            product += to[i] * along[i];
        }
        float mean = row_sum(sum) / (float)width, shadow = row_sum(product) / (float)width;
        EACH_LANE(i, width) to[i] = (to[i] - mean - along[i] * shadow) * inverse[row];
    }
}
