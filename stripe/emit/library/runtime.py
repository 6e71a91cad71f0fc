"""The C that binds weights: checks of a file in memory, and the three ways to get it there.

The texts call the library `net`; `with_prefix` puts its own prefix in place.
"""

from __future__ import annotations

SETUP_PLAIN = """\
int net_setup(net_model *net) {
  if (net == NULL) return NET_ERROR_ARGUMENT;
  memset(net, 0, sizeof *net);
  net->ready = 1;
  return NET_OK;
}

void net_release(net_model *net) {
  if (net != NULL) memset(net, 0, sizeof *net);
}
"""


SETUP_MEMORY = """\
// CRC-32 (polynomial 0xedb88320), four bytes at a time: row r has the remainders of a byte before r others.
static uint32_t net_crc(const unsigned char *data, size_t bytes) {
  uint32_t table[4][256];
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1u ? 0xedb88320u : 0u);
    table[0][byte] = value;
  }
  for (int row = 1; row < 4; ++row)
    for (int byte = 0; byte < 256; ++byte) {
      const uint32_t value = table[row - 1][byte];
      table[row][byte] = value >> 8 ^ table[0][value & 0xffu];
    }
  uint32_t crc = 0xffffffffu;
  for (; bytes >= 4; data += 4, bytes -= 4)
    crc = table[3][(crc ^ data[0]) & 0xffu] ^ table[2][(crc >> 8 ^ data[1]) & 0xffu] ^
          table[1][(crc >> 16 ^ data[2]) & 0xffu] ^ table[0][(crc >> 24 ^ data[3]) & 0xffu];
  for (; bytes > 0; ++data, --bytes) crc = crc >> 8 ^ table[0][(crc ^ *data) & 0xffu];
  return crc ^ 0xffffffffu;
}

int net_setup_memory(net_model *net, const void *weights, size_t bytes) {
  if (net == NULL) return NET_ERROR_ARGUMENT;
  memset(net, 0, sizeof *net);
  if (weights == NULL || (uintptr_t)weights % NET_ALIGNMENT != 0) return NET_ERROR_ARGUMENT;
  if (bytes < 64) return NET_ERROR_SIZE;
  const unsigned char *data = weights;
  uint32_t format, order, layout, checksum;
  uint64_t size;
  memcpy(&format, data + 8, 4);
  memcpy(&order, data + 12, 4);
  memcpy(&size, data + 16, 8);
  memcpy(&layout, data + 24, 4);
  memcpy(&checksum, data + 28, 4);
  if (memcmp(data, "STRIPEWT", 8) != 0 || format != 1 || order != 0x01020304u) return NET_ERROR_FORMAT;
  if (layout != NET_WEIGHTS_LAYOUT) return NET_ERROR_LAYOUT;
  if (size != bytes || size != NET_WEIGHTS_BYTES) return NET_ERROR_SIZE;
  if (net_crc(data + 64, bytes - 64) != checksum) return NET_ERROR_CHECKSUM;
  net->weights = data + 64;
  net->ready = 1;
  return NET_OK;
}
"""

SETUP_LINKED = """\
extern const uint64_t net_weights_data[];

int net_setup(net_model *net) { return net_setup_memory(net, net_weights_data, NET_WEIGHTS_BYTES); }

void net_release(net_model *net) {
  if (net != NULL) memset(net, 0, sizeof *net);
}
"""

SETUP_FILE = """\
#if defined(NET_NO_FILES)

void net_release(net_model *net) {
  if (net != NULL) memset(net, 0, sizeof *net);
}

#elif defined(__unix__) || defined(__APPLE__)

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int net_setup_file(net_model *net, const char *path) {
  if (net == NULL) return NET_ERROR_ARGUMENT;
  memset(net, 0, sizeof *net);
  if (path == NULL) return NET_ERROR_ARGUMENT;
  const int file = open(path, O_RDONLY);
  if (file < 0) return NET_ERROR_FILE;
  struct stat status;
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(file);
    return NET_ERROR_FILE;
  }
  if (status.st_size < 64) {
    close(file);
    return NET_ERROR_SIZE;
  }
  const size_t bytes = (size_t)status.st_size;
  void *mapped = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (mapped == MAP_FAILED) return NET_ERROR_FILE;
  const int result = net_setup_memory(net, mapped, bytes);
  if (result != NET_OK) {
    munmap(mapped, bytes);
    return result;
  }
  net->mapped = mapped;
  net->mapped_bytes = bytes;
  return NET_OK;
}

void net_release(net_model *net) {
  if (net == NULL) return;
  if (net->mapped != NULL) munmap(net->mapped, net->mapped_bytes);
  memset(net, 0, sizeof *net);
}

#else

#include <stdio.h>
#include <stdlib.h>

int net_setup_file(net_model *net, const char *path) {
  if (net == NULL) return NET_ERROR_ARGUMENT;
  memset(net, 0, sizeof *net);
  if (path == NULL) return NET_ERROR_ARGUMENT;
  FILE *file = fopen(path, "rb");
  if (file == NULL) return NET_ERROR_FILE;
  const size_t bytes = (size_t)NET_WEIGHTS_BYTES;
  unsigned char *memory = malloc(bytes + NET_ALIGNMENT + 1);
  if (memory == NULL) {
    fclose(file);
    return NET_ERROR_FILE;
  }
  unsigned char *data = memory + (NET_ALIGNMENT - (uintptr_t)memory % NET_ALIGNMENT);
  const size_t found = fread(data, 1, bytes + 1, file);
  fclose(file);
  const int result = net_setup_memory(net, data, found);
  if (result != NET_OK) {
    free(memory);
    return result;
  }
  net->mapped = memory;
  return NET_OK;
}

void net_release(net_model *net) {
  if (net == NULL) return;
  free(net->mapped);
  memset(net, 0, sizeof *net);
}

#endif
"""
