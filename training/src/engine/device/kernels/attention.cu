// Multi-head attention inside each outfit. A thread has one row and one head; `most` is the longest row of
// keys in the batch, and the width of the rows of weights.

KERNEL attend(float *value, float *weights, const float *queries, const float *keys_values,
              const unsigned *outfit_of, const unsigned *key_starts, unsigned rows, unsigned width,
              unsigned heads, unsigned most) {
    unsigned head = width / heads;
    float scale = 1.0f / sqrtf((float)head);
    EACH(i, rows * heads) {
        unsigned at = i % heads * head;
        unsigned first = key_starts[outfit_of[i / heads]], end = key_starts[outfit_of[i / heads] + 1];
        const float *query = queries + i / heads * width + at;
        float *to = value + i / heads * width + at, *weight = weights + i * most;
        float highest = 0.0f, total = 0.0f;
        for (unsigned key = first; key < end; key++) {
            const float *with = keys_values + key * 2 * width + at;
            float score = 0.0f;
            for (unsigned lane = 0; lane < head; lane++) score += query[lane] * with[lane];
            score *= scale;
            weight[key - first] = score;
            highest = key == first ? score : fmaxf(highest, score);
        }
        for (unsigned key = 0; key < end - first; key++) {
            weight[key] = expf(weight[key] - highest);
            total += weight[key];
        }
        for (unsigned key = 0; key < end - first; key++) weight[key] /= total;
        for (unsigned lane = 0; lane < head; lane++) {
            float sum = 0.0f;
            for (unsigned key = first; key < end; key++) {
                sum += weight[key - first] * keys_values[key * 2 * width + width + at + lane];
            }
            to[lane] = sum;
        }
    }
}

// The gradients of the scores, and from them those of the queries.
KERNEL unattend_queries(float *query_gradient, float *scores, const float *gradient,
                        const float *keys_values, const float *weights, const unsigned *outfit_of,
                        const unsigned *key_starts, unsigned rows, unsigned width, unsigned heads,
                        unsigned most) {
    unsigned head = width / heads;
    float scale = 1.0f / sqrtf((float)head);
    EACH(i, rows * heads) {
        unsigned at = i % heads * head;
        unsigned first = key_starts[outfit_of[i / heads]], end = key_starts[outfit_of[i / heads] + 1];
        const float *from = gradient + i / heads * width + at, *weight = weights + i * most;
        float *to = query_gradient + i / heads * width + at, *score = scores + i * most;
        float mean = 0.0f;
        for (unsigned key = first; key < end; key++) {
            const float *with = keys_values + key * 2 * width + width + at;
            float sum = 0.0f;
            for (unsigned lane = 0; lane < head; lane++) sum += from[lane] * with[lane];
            score[key - first] = sum;
            mean += weight[key - first] * sum;
        }
        for (unsigned key = 0; key < end - first; key++) {
            score[key] = weight[key] * (score[key] - mean) * scale;
        }
        for (unsigned lane = 0; lane < head; lane++) {
            float sum = 0.0f;
            for (unsigned key = first; key < end; key++) {
                sum += score[key - first] * keys_values[key * 2 * width + at + lane];
            }
            to[lane] = sum;
        }
    }
}

// The gradients of the keys and the values, each row from all that asked it.
KERNEL unattend_keys(float *key_value_gradient, const float *scores, const float *weights,
                     const float *gradient, const float *queries, const unsigned *outfit_of,
                     const unsigned *key_starts, const unsigned *query_starts, unsigned rows,
                     unsigned width, unsigned heads, unsigned most) {
    unsigned head = width / heads;
    EACH(i, rows * heads) {
        unsigned key = i / heads, at = i % heads * head, outfit = outfit_of[key];
        float *to = key_value_gradient + key * 2 * width + at;
        for (unsigned lane = 0; lane < head; lane++) {
            float of_key = 0.0f, of_value = 0.0f;
            for (unsigned query = query_starts[outfit]; query < query_starts[outfit + 1]; query++) {
                unsigned weight = (query * heads + i % heads) * most + key - key_starts[outfit];
                of_key += scores[weight] * queries[query * width + at + lane];
                of_value += weights[weight] * gradient[query * width + at + lane];
            }
            to[lane] = of_key;
            to[width + lane] = of_value;
        }
    }
}
