// Sums of products of bytes in the form of emitted code (stripe/emit/c/dots.py): nine of them, along rows that lie in the first
// cache. Their speed tells the instructions that the compiler makes.
#include <stdint.h>

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
typedef uint8_t factor;
#elif defined(__SSE2__) && !defined(__clang__)
typedef int16_t factor;
#else
typedef int8_t factor;
#endif

enum { ROW = 2048 };

int32_t st_dots(const int8_t *rows, int64_t count, int16_t zero);
int32_t st_dots(const int8_t *rows, int64_t count, int16_t zero) {
  uint32_t all = 0;
  for (int64_t n = 0; n < count; ++n) {
    int32_t s = 0, t = 0, u = 0, v = 0, w = 0, x = 0, y = 0, z = 0, o = 0;
    for (int64_t k = 0; k < ROW; ++k) {
      const int32_t a = (factor)(rows[k] + zero), b = (factor)(rows[k + ROW] + zero);
      const int32_t c = (factor)(rows[k + 2 * ROW] + zero);
      const int32_t f = rows[k + 3 * ROW], g = rows[k + 4 * ROW], h = rows[k + 5 * ROW];
      s += a * f, t += a * g, u += a * h;
      v += b * f, w += b * g, x += b * h;
      y += c * f, z += c * g, o += c * h;
    }
    all += (uint32_t)(s + t + u + v + w + x + y + z + o);
    __asm__ volatile("" ::: "memory");  // the next round sums again
  }
  return (int32_t)all;
}
