/* LD_PRELOAD: disk faults and a journal of writes below one folder.
 *
 * SHIM_ROOT     the folder; everything else is left alone
 * SHIM_JOURNAL  if set, every change below the folder is appended here, with fsyncs as they return
 * SHIM_ERRNO    if set, fail with this errno: ENOSPC, EIO, EDQUOT, EROFS; 0 makes writes short
 * SHIM_EVERY    fail about one in this many operations
 * SHIM_SEED     of the choice
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int journal = -1, fault = -1;
static unsigned every = 0, state = 1;
static char root[PATH_MAX];

__attribute__((constructor)) static void start(void) {
    const char *value = getenv("SHIM_ROOT");
    if (!value || !realpath(value, root)) root[0] = 0;
    if ((value = getenv("SHIM_ERRNO"))) fault = atoi(value);
    if ((value = getenv("SHIM_EVERY"))) every = (unsigned)atoi(value);
    if ((value = getenv("SHIM_SEED"))) state = (unsigned)atoi(value) * 2654435761u | 1u;
    if ((value = getenv("SHIM_JOURNAL"))) {
        int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
        journal = real(value, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    }
}

static int below(const char *path) {
    size_t n = strlen(root);
    return n && !strncmp(path, root, n) && (path[n] == '/' || !path[n]);
}

static int path_of(int fd, char *out) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, out, PATH_MAX - 1);
    if (n <= 0) return 0;
    out[n] = 0;
    return below(out);
}

static int resolve(int dir, const char *path, char *out) {
    if (path[0] == '/') snprintf(out, PATH_MAX, "%s", path);
    else if (dir == AT_FDCWD) {
        char cwd[PATH_MAX];
        if (!getcwd(cwd, sizeof cwd)) return 0;
        snprintf(out, PATH_MAX, "%.2000s/%.2000s", cwd, path);
    } else {
        char folder[PATH_MAX], link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
        ssize_t n = readlink(link, folder, sizeof folder - 1);
        if (n <= 0) return 0;
        folder[n] = 0;
        snprintf(out, PATH_MAX, "%.2000s/%.2000s", folder, path);
    }
    return below(out);
}

/* One record: kind, offset, length of the data, then path, second path and data, each preceded by its length. */
static void note(char kind, const char *path, const char *other, long long offset, const void *data, size_t size) {
    if (journal < 0) return;
    ssize_t (*real)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
    char head[64];
    size_t first = strlen(path), second = other ? strlen(other) : 0;
    int n = snprintf(head, sizeof head, "%c %lld %zu %zu %zu\n", kind, offset, first, second, size);
    char *record = malloc((size_t)n + first + second + size);
    if (!record) return;
    memcpy(record, head, (size_t)n);
    memcpy(record + n, path, first);
    if (second) memcpy(record + n + first, other, second);
    if (size) memcpy(record + n + first + second, data, size);
    pthread_mutex_lock(&lock);
    if (real(journal, record, (size_t)n + first + second + size) < 0) abort();
    pthread_mutex_unlock(&lock);
    free(record);
}

static int fails(void) {
    if (!every) return 0;
    pthread_mutex_lock(&lock);
    state ^= state << 13; state ^= state >> 17; state ^= state << 5;
    unsigned chosen = state % every;
    pthread_mutex_unlock(&lock);
    return chosen == 0;
}

#define REAL(name) __typeof__(name) *real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)
#define FAIL_IF_CHOSEN if (fault > 0 && fails()) { errno = fault; return -1; }

ssize_t write(int fd, const void *data, size_t size) {
    REAL(write);
    char path[PATH_MAX];
    if (!root[0] || fd == journal || !path_of(fd, path)) return real(fd, data, size);
    FAIL_IF_CHOSEN
    if (fault == 0 && size > 1 && fails()) size = size / 2;
    off_t before = lseek(fd, 0, SEEK_CUR);
    struct stat found;
    if (fcntl(fd, F_GETFL) & O_APPEND && !fstat(fd, &found)) before = found.st_size;
    ssize_t done = real(fd, data, size);
    if (done > 0) note('w', path, NULL, before, data, (size_t)done);
    return done;
}

static int sync_file(int fd, const char *name) {
    int (*real)(int) = dlsym(RTLD_NEXT, name);
    char path[PATH_MAX];
    if (!root[0] || !path_of(fd, path)) return real(fd);
    FAIL_IF_CHOSEN
    int done = real(fd);
    if (!done) note('s', path, NULL, 0, NULL, 0);
    return done;
}
int fsync(int fd) { return sync_file(fd, "fsync"); }
int fdatasync(int fd) { return sync_file(fd, "fdatasync"); }

static int cut(int fd, off_t size, const char *name) {
    int (*real)(int, off_t) = dlsym(RTLD_NEXT, name);
    char path[PATH_MAX];
    if (!root[0] || !path_of(fd, path)) return real(fd, size);
    int done = real(fd, size);
    if (!done) note('t', path, NULL, size, NULL, 0);
    return done;
}
int ftruncate(int fd, off_t size) { return cut(fd, size, "ftruncate"); }
int ftruncate64(int fd, off64_t size) { return cut(fd, size, "ftruncate64"); }

static int open_at(int dir, const char *path, int flags, mode_t mode) {
    int (*real)(int, const char *, int, ...) = dlsym(RTLD_NEXT, "openat64");
    char full[PATH_MAX];
    int writes = flags & (O_CREAT | O_TRUNC);
    if (!root[0] || !writes || !resolve(dir, path, full)) return real(dir, path, flags, mode);
    struct stat found;
    int existed = !fstatat(dir, path, &found, 0);
    if (!existed) FAIL_IF_CHOSEN
    int fd = real(dir, path, flags, mode);
    if (fd >= 0 && !existed) note('c', full, NULL, 0, NULL, 0);
    if (fd >= 0 && existed && flags & O_TRUNC) note('t', full, NULL, 0, NULL, 0);
    return fd;
}
#define OPEN(name) int name(const char *path, int flags, ...) { \
    va_list list; va_start(list, flags); mode_t mode = va_arg(list, mode_t); va_end(list); \
    return open_at(AT_FDCWD, path, flags, mode); }
#define OPENAT(name) int name(int dir, const char *path, int flags, ...) { \
    va_list list; va_start(list, flags); mode_t mode = va_arg(list, mode_t); va_end(list); \
    return open_at(dir, path, flags, mode); }
OPEN(open) OPEN(open64) OPENAT(openat) OPENAT(openat64)

static int move(int from_dir, const char *from, int to_dir, const char *to) {
    int (*real)(int, const char *, int, const char *) = dlsym(RTLD_NEXT, "renameat");
    char one[PATH_MAX], other[PATH_MAX];
    int ours = root[0] && resolve(from_dir, from, one) && resolve(to_dir, to, other);
    if (ours) FAIL_IF_CHOSEN
    int done = real(from_dir, from, to_dir, to);
    if (!done && ours) note('r', one, other, 0, NULL, 0);
    return done;
}
int rename(const char *from, const char *to) { return move(AT_FDCWD, from, AT_FDCWD, to); }
int renameat(int from_dir, const char *from, int to_dir, const char *to) { return move(from_dir, from, to_dir, to); }

int unlinkat(int dir, const char *path, int flags) {
    REAL(unlinkat);
    char full[PATH_MAX];
    int ours = root[0] && resolve(dir, path, full);
    int done = real(dir, path, flags);
    if (!done && ours) note('u', full, NULL, 0, NULL, 0);
    return done;
}
int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

int mkdirat(int dir, const char *path, mode_t mode) {
    REAL(mkdirat);
    char full[PATH_MAX];
    int ours = root[0] && resolve(dir, path, full);
    if (ours) FAIL_IF_CHOSEN
    int done = real(dir, path, mode);
    if (!done && ours) note('m', full, NULL, 0, NULL, 0);
    return done;
}
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }
