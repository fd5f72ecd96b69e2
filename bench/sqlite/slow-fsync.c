/* fsync and fdatasync that take 5 ms longer. See slow-disk.ts. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>

#define DELAY_MICROS 5000

static int slowly(const char *name, int file) {
  int (*sync)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
  int result = sync(file);
  usleep(DELAY_MICROS);
  return result;
}

int fsync(int file) { return slowly("fsync", file); }
int fdatasync(int file) { return slowly("fdatasync", file); }
