// What files can do at the most: inotify, one read and one unlink (or rename) for each, nothing kept and nothing decided.
//
//   native [-d DONE] [-l LEDGER] [-c]
//
// Reads the directories to watch from standard input, one to a line, up to an empty line; takes what lies there already;
// then says "ready", and ends with its input. Once it is calm it tells "NAME NANOSECONDS" for each file it has handled,
// or with -c only "COUNT NANOSECONDS". With -d files are renamed into DONE instead of removed. With -l each name is
// written to LEDGER before the file is removed, so that it can be killed.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

static const char *done, *ledger;
static int counting, done_at, ledger_at, bell;
static char **paths; // of the directories, by watch descriptor, which inotify counts from 1
static int watches;
static long handled, told;
static long long last;

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static long long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

// There may be more directories than files that may be open: only the one in use is.
static int open_directory(int watch) {
  static int opened, descriptor = -1;
  if (watch == opened) return descriptor;
  if (descriptor >= 0) close(descriptor);
  descriptor = open(paths[watch], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail(paths[watch]);
  opened = watch;
  return descriptor;
}

static void handle(int directory, const char *name) {
  char text[65536];
  size_t length = strlen(name);
  if (length < 5 || strcmp(name + length - 5, ".json") != 0) return;
  int file = openat(directory, name, O_RDONLY | O_CLOEXEC);
  if (file < 0) return; // an event for what a listing has taken already
  ssize_t size = read(file, text, sizeof text);
  close(file);
  if (size < 2 || text[0] != '{' || text[size - 1] != '}') fail(name);
  last = now();
  handled++;
  if (!counting) printf("%s %lld\n", name, last);
  if (ledger && dprintf(ledger_at, "%s\n", name) < 0) fail(ledger);
  if (done ? renameat(directory, name, done_at, name) : unlinkat(directory, name, 0)) fail(name);
}

static void list(int directory) {
  int again = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *stream = again < 0 ? NULL : fdopendir(again);
  if (!stream) fail("list");
  for (struct dirent *entry; (entry = readdir(stream));) handle(directory, entry->d_name);
  closedir(stream);
}

static void list_all(void) {
  for (int watch = 1; watch <= watches; watch++) list(open_directory(watch));
}

static void watch_all(void) {
  char path[4096];
  while (fgets(path, sizeof path, stdin)) {
    path[strcspn(path, "\n")] = 0;
    if (!*path) return;
    int watch = inotify_add_watch(bell, path, IN_MOVED_TO | IN_ONLYDIR);
    if (watch < 0) fail(path);
    if (watch > watches) {
      watches = watch;
      paths = realloc(paths, (watch + 1) * sizeof *paths);
    }
    paths[watch] = strdup(path);
  }
}

static void tell(void) {
  if (counting && handled > told) printf("%ld %lld\n", handled, last);
  told = handled;
  fflush(stdout);
}

int main(int count, char **arguments) {
  for (int option; (option = getopt(count, arguments, "d:l:c")) != -1;) {
    if (option == 'd') done = optarg;
    else if (option == 'l') ledger = optarg;
    else if (option == 'c') counting = 1;
    else return 2;
  }
  static char out[1 << 20];
  setvbuf(stdout, out, _IOFBF, sizeof out);
  if (done && (done_at = open(done, O_PATH | O_DIRECTORY)) < 0) fail(done);
  if (ledger && (ledger_at = open(ledger, O_WRONLY | O_APPEND | O_CREAT, 0600)) < 0) fail(ledger);
  if ((bell = inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) < 0) fail("inotify");
  watch_all();
  puts("ready");
  tell();
  list_all();

  struct pollfd waiting[] = {{bell, POLLIN, 0}, {0, POLLIN, 0}};
  for (;;) {
    static char events[1 << 16] __attribute__((aligned(8)));
    int ready = poll(waiting, 2, handled > told ? 20 : -1);
    if (ready < 0 && errno != EINTR) fail("poll");
    if (ready == 0) tell();
    if (waiting[1].revents) break;
    for (ssize_t size; (size = read(bell, events, sizeof events)) > 0;) {
      for (char *at = events; at < events + size;) {
        const struct inotify_event *event = (const struct inotify_event *)at;
        if (event->mask & IN_Q_OVERFLOW) list_all(); // the kernel has dropped some: only looking helps
        else if (event->len) handle(open_directory(event->wd), event->name);
        at += sizeof *event + event->len;
      }
    }
  }
  tell();
  return 0;
}
