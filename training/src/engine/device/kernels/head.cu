// Personas, and the last dense layer's loss.

// How much of each persona an outfit's visible articles show.
KERNEL personas(float *value, const float *table, const unsigned *slots, const unsigned *starts,
                unsigned outfits, unsigned count, unsigned blank, float evidence) {
    EACH(outfit, outfits) {
        float *share = value + outfit * count;
        float most = 0.0f, total = 0.0f;
        for (unsigned persona = 0; persona < count; persona++) {
            share[persona] = 0.0f;
            for (unsigned slot = starts[outfit]; slot < starts[outfit + 1]; slot++) {
                if (slots[slot] < blank) share[persona] += table[slots[slot] * count + persona];
            }
            most = persona == 0 ? share[0] : fmaxf(most, share[persona]);
        }
        for (unsigned persona = 0; persona < count; persona++) {
            share[persona] = expf(share[persona] - most);
            total += share[persona];
        }
        for (unsigned persona = 0; persona < count; persona++) {
            share[persona] = evidence * share[persona] / total + (1.0f - evidence) / (float)count;
        }
    }
}

// What moves the biases of each visible article of an outfit.
KERNEL unpersonas(float *to, const float *gradient, const float *value, unsigned outfits, unsigned count,
                  float evidence) {
    EACH(outfit, outfits) {
        unsigned first = outfit * count;
        float even = (1.0f - evidence) / (float)count, mean = 0.0f;
        for (unsigned at = first; at < first + count; at++) {
            mean += (value[at] - even) / evidence * gradient[at];
        }
        for (unsigned at = first; at < first + count; at++) {
            to[at] = (value[at] - even) * (gradient[at] - mean);
        }
    }
}

// Of each piece of each row of logits, bias included: the highest, and the sum of what is e to the
// distance from it.
KERNEL softmax_parts(float *parts, const float *logits, const float *bias, unsigned rows, unsigned width,
                     unsigned pieces) {
    unsigned piece = (width + pieces - 1) / pieces;
    EACH_ROW(part, rows * pieces) {
        unsigned row = part / pieces, first = part % pieces * piece;
        unsigned end = first + piece < width ? first + piece : width;
        float most = -3.0e38f, total = 0.0f;
        for (unsigned i = first + threadIdx.x % LANES; i < end; i += LANES) {
            float logit = logits[row * width + i] + bias[i];
            if (logit > most) {
                total = total * expf(most - logit) + 1.0f;
                most = logit;
            } else {
                total += expf(logit - most);
            }
        }
        float highest = most;
        for (unsigned far = LANES / 2; far > 0; far /= 2) {
            highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, far));
        }
        total = row_sum(total * expf(most - highest));
        if (threadIdx.x % LANES == 0) {
            parts[part * 2] = highest;
            parts[part * 2 + 1] = total;
        }
    }
}

// Each row's cross-entropy, and its highest logit and its sum side by side.
KERNEL softmax_total(float *losses, float *totals, const float *parts, const float *logits,
                     const float *bias, const unsigned *targets, unsigned rows, unsigned width,
                     unsigned pieces) {
    EACH(row, rows) {
        const float *part = parts + row * pieces * 2;
        float most = part[0], total = 0.0f;
        for (unsigned piece = 1; piece < pieces; piece++) most = fmaxf(most, part[piece * 2]);
        for (unsigned piece = 0; piece < pieces; piece++) {
            total += part[piece * 2 + 1] * expf(part[piece * 2] - most);
        }
        totals[row * 2] = most;
        totals[row * 2 + 1] = total;
        losses[row] = logf(total) + most - logits[row * width + targets[row]] - bias[targets[row]];
    }
}

// In place of the logits their gradient, when each row's loss is multiplied by its weight.
KERNEL softmax_gradient(float *logits, const float *bias, const float *totals, const unsigned *targets,
                        const float *weights, unsigned rows, unsigned width) {
    EACH(i, rows * width) {
        unsigned row = i / width, article = i % width;
        float share = expf(logits[i] + bias[article] - totals[row * 2]) / totals[row * 2 + 1];
        logits[i] = weights[row] * (article == targets[row] ? share - 1.0f : share);
    }
}
