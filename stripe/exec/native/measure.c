// Short loops whose speed is that of one part of a core. The caller times them.
#include <stddef.h>
#include <stdint.h>

typedef float vec __attribute__((vector_size(VECTOR_BYTES)));
typedef uint32_t words __attribute__((vector_size(VECTOR_BYTES)));

// Six operations on integers a step, each needing the one before: six cycles.
uint64_t st_steps(int64_t count, uint64_t x);
uint64_t st_steps(int64_t count, uint64_t x) {
  for (int64_t i = 0; i < count; ++i) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
  }
  return x;
}

// Multiply-adds of vectors, each needing the one before.
float st_chain(int64_t count, float x, float y);
float st_chain(int64_t count, float x, float y) {
  const vec factor = (vec){0} + x, term = (vec){0} + y;
  vec sum = term;
  for (int64_t i = 0; i < count; ++i) sum = sum * factor + term;
  return sum[0];
}

// Twelve different sums at once, which hide the latency of a multiply-add and fit 16 registers with the operands.
float st_peak(int64_t count, float x, float y);
float st_peak(int64_t count, float x, float y) {
  const vec f = (vec){0} + x, t = (vec){0} + y;
  vec a = t, b = a + f, c = b + f, d = c + f, e = d + f, g = e + f;
  vec h = g + f, i = h + f, j = i + f, k = j + f, l = k + f, m = l + f;
  for (int64_t n = 0; n < count; ++n) {
    a = a * f + t, b = b * f + t, c = c * f + t, d = d * f + t, e = e * f + t, g = g * f + t;
    h = h * f + t, i = i * f + t, j = j * f + t, k = k * f + t, l = l * f + t, m = m * f + t;
  }
  return (a + b + c + d + e + g + h + i + j + k + l + m)[0];
}

// Reads `count` times eight vectors, `sweeps` times.
uint32_t st_read(const void *memory, int64_t count, int64_t sweeps);
uint32_t st_read(const void *memory, int64_t count, int64_t sweeps) {
  words a = {0}, b = a, c = a, d = a;
  for (int64_t sweep = 0; sweep < sweeps; ++sweep) {
    const words *p = memory;
    for (int64_t i = 0; i < count; ++i, p += 8) {
      a |= p[0], b |= p[1], c |= p[2], d |= p[3];
      a ^= p[4], b ^= p[5], c ^= p[6], d ^= p[7];
    }
    __asm__ volatile("" ::: "memory");  // the next sweep reads again
  }
  return (a | b | c | d)[0];
}

// Loads `count` times eight elements of a line, each for all lanes.
uint32_t st_load(const void *memory, int64_t count);
uint32_t st_load(const void *memory, int64_t count) {
  const uint32_t *p = memory;
  words a = {0}, b = a, c = a, d = a;
  for (int64_t i = 0; i < count; ++i) {
    a |= (words){0} + p[0], b |= (words){0} + p[1], c |= (words){0} + p[2], d |= (words){0} + p[3];
    a ^= (words){0} + p[4], b ^= (words){0} + p[5], c ^= (words){0} + p[6], d ^= (words){0} + p[7];
    __asm__ volatile("" ::: "memory");  // the next round loads again
  }
  return (a | b | c | d)[0];
}
