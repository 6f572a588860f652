import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicLong;

public class Work {
  static final AtomicLong nanoseconds = new AtomicLong();
  static volatile long last;

  static long count(long total) {
    for (long n = 0; n < 100_000_000; n++) {
      total += n % 7; // BREAK
    }
    return total;
  }

  static void countTimed(long at) {
    last = count(at);
    nanoseconds.addAndGet(ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime());
  }

  public static void main(String[] arguments) throws InterruptedException {
    ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    System.out.println("up");
    while (!Files.exists(Path.of("go"))) {
      Thread.sleep(20);
    }
    Thread[] threads = new Thread[4];
    for (int at = 0; at < 4; at++) {
      long start = at;
      threads[at] = new Thread(() -> countTimed(start));
      threads[at].start();
    }
    for (Thread thread : threads) {
      thread.join();
    }
    System.out.println(nanoseconds.get() / 1e6);
  }
}
