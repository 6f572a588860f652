#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static void *count(void *at) {
  long total = (long)at;
  for (long n = 0; n < 90000000; n++) {
    total += n % 7; // BREAK
  }
  return (void *)total;
}

static double processor_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec * 1e3 + time.tv_nsec / 1e6;
}

int main(void) {
  puts("up");
  fflush(stdout);
  while (access("go", F_OK)) usleep(20000);
  double before = processor_ms();
  pthread_t threads[4];
  for (long at = 0; at < 4; at++) pthread_create(&threads[at], 0, count, (void *)at);
  for (int at = 0; at < 4; at++) pthread_join(threads[at], 0);
  printf("%f\n", processor_ms() - before);
}
