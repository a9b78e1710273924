// AdamW over all dense weights at once, and over the rows of the article table that a step touched.

DEVICE void move_by(float *weight, float gradient, float *first, float *second, float beta1, float beta2,
                    float rate, float epsilon, float kept, float second_correction) {
    *first = beta1 * *first + (1.0f - beta1) * gradient;
    *second = beta2 * *second + (1.0f - beta2) * gradient * gradient;
    *weight = *weight * kept - rate * *first / (sqrtf(*second * second_correction) + epsilon);
}

// factor to the power of a whole number
DEVICE float raised(float factor, unsigned times) {
    float power = 1.0f;
    for (; times > 0; times /= 2) {
        if (times % 2 == 1) power *= factor;
        factor *= factor;
    }
    return power;
}

// The first `decaying` of the weights decay.
KERNEL adamw(float *weights, const float *gradient, float *first, float *second, unsigned count,
             unsigned decaying, float beta1, float beta2, float rate, float epsilon, float kept,
             float second_correction) {
    EACH(i, count) {
        move_by(&weights[i], gradient[i], &first[i], &second[i], beta1, beta2, rate, epsilon,
                i < decaying ? kept : 1.0f, second_correction);
    }
}

// A row that steps have missed decays for each of them, and so do its moments.
KERNEL adamw_rows(float *weights, const float *gradient, float *first, float *second, const unsigned *rows,
                  const unsigned *missed, unsigned count, unsigned width, float beta1, float beta2,
                  float rate, float epsilon, float kept, float second_correction) {
    EACH(i, count * width) {
        unsigned at = rows[i / width] * width + i % width, times = missed[i / width];
        first[at] *= raised(beta1, times);
        second[at] *= raised(beta2, times);
        weights[at] *= raised(kept, times);
        move_by(&weights[at], gradient[at], &first[at], &second[at], beta1, beta2, rate, epsilon, kept,
                second_correction);
    }
}
