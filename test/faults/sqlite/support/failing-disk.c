/*
 * Calls on the files of a store that fail while a file says so. FAULT_FILE names it; it contains the error's number and the
 * names of the calls, such as "5 fsync pwrite". See failing-disk.ts.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The error of this call, or 0. With system calls of its own: it must not end in itself. */
static int fault(const char *call, int file) {
  const char *path = getenv("FAULT_FILE");
  char text[128], link[64], name[4096];
  ssize_t length;
  int said;
  if (path == NULL || (said = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY)) < 0) return 0;
  length = syscall(SYS_read, said, text, sizeof text - 1);
  syscall(SYS_close, said);
  if (length <= 0) return 0;
  text[length] = 0;
  if (strstr(text, call) == NULL) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  length = readlink(link, name, sizeof name - 1);
  if (length <= 0) return 0;
  name[length] = 0;
  return strstr(name, "/holdfast.db") == NULL && strstr(name, "/probe-") == NULL ? 0 : atoi(text);
}

#define FAIL_IF(call, file) do { int error = fault(call, file); if (error != 0) { errno = error; return -1; } } while (0)

int fsync(int file) {
  FAIL_IF("fsync", file);
  return (int)syscall(SYS_fsync, file);
}

int fdatasync(int file) {
  FAIL_IF("fsync", file);
  return (int)syscall(SYS_fdatasync, file);
}

ssize_t pwrite(int file, const void *data, size_t size, off_t at) {
  FAIL_IF("pwrite", file);
  return syscall(SYS_pwrite64, file, data, size, at);
}

ssize_t pwrite64(int file, const void *data, size_t size, off64_t at) {
  FAIL_IF("pwrite", file);
  return syscall(SYS_pwrite64, file, data, size, at);
}

ssize_t write(int file, const void *data, size_t size) {
  FAIL_IF("pwrite", file);
  return syscall(SYS_write, file, data, size);
}

ssize_t pread64(int file, void *data, size_t size, off64_t at) {
  FAIL_IF("pread", file);
  return syscall(SYS_pread64, file, data, size, at);
}
