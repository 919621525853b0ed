// SPDX-License-Identifier: GPL-2.0-only

import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Threads that allocate and drop in a JVM, which collects and gives memory back.
 *
 * <p>Each block is compared with what was written to it before another one takes its place. Twice a
 * second all of them are dropped and collected; with which collector, and how much of the heap is
 * kept then, is for the options of the JVM to say. An operation is a block.
 */
public final class Churn {
  private static final int KEPT = 256;
  private static final int TURNS = 64;
  private static final long COLLECT_MS = 500;
  /** What each thread does at least, however slow it is. */
  private static final long LEAST = 4 * TURNS;

  private static final AtomicLong DONE = new AtomicLong();
  private static final AtomicLong WRONG = new AtomicLong();
  private static final AtomicBoolean SPOIL = new AtomicBoolean();
  private static volatile boolean stop;
  private static volatile int turn;

  private Churn() {}

  private static long mix(long x) {
    x = (x ^ (x >>> 32)) * 0xd6e8feb86659fd93L;
    x = (x ^ (x >>> 32)) * 0xd6e8feb86659fd93L;
    return x ^ (x >>> 32);
  }

  /** Most blocks are small, and most memory is in large ones. */
  private static int sizeOf(long seed) {
    int kind = (int) (seed >>> 8 & 127);
    int most = kind < 90 ? 64 : kind < 126 ? 4096 : 65536;
    return 8 + (int) ((seed >>> 16) % most);
  }

  private static long[] take(long seed) {
    long[] words = new long[sizeOf(seed)];
    for (int i = 0; i < words.length; i++) {
      words[i] = seed + i;
    }
    return words;
  }

  private static boolean isWrong(long[] words, long seed) {
    for (int i = 0; i < words.length; i++) {
      if (words[i] != seed + i) {
        return true;
      }
    }
    return false;
  }

  private static void churn(int number) {
    long[][] blocks = new long[KEPT][];
    long[] seeds = new long[KEPT];
    long seed = mix(number + 1);
    int seen = turn;
    while (!stop) {
      if (seen != turn) {
        seen = turn;
        blocks = new long[KEPT][];
      }
      for (int i = 0; i < TURNS; i++) {
        seed = mix(seed + 0x9e3779b97f4a7c15L) & Long.MAX_VALUE;
        int slot = (int) (seed >>> 40) & (KEPT - 1);
        long[] old = blocks[slot];
        if (old != null) {
          if (SPOIL.compareAndSet(true, false)) {
            old[0] ^= 1;
          }
          if (isWrong(old, seeds[slot])) {
            WRONG.incrementAndGet();
          }
        }
        blocks[slot] = take(seed);
        seeds[slot] = seed;
      }
      DONE.addAndGet(TURNS);
    }
  }

  /** Starts the threads, drops and collects until the time is over, and says what was done. */
  public static void main(String[] words) throws InterruptedException {
    if (words.length < 2 || words.length > 3) {
      System.err.println("Churn: use: Churn THREADS SECONDS [spoil]");
      System.exit(2);
    }
    int count = Integer.parseInt(words[0]);
    long length = (long) (Double.parseDouble(words[1]) * 1e9);
    SPOIL.set(words.length == 3);
    List<Thread> threads = new ArrayList<>();
    long begin = System.nanoTime();
    for (int i = 0; i < count; i++) {
      int number = i;
      Thread thread = new Thread(() -> churn(number));
      thread.start();
      threads.add(thread);
    }
    while (System.nanoTime() - begin < length || DONE.get() < count * LEAST) {
      Thread.sleep(Math.min(COLLECT_MS, length / 1000000 / 4 + 1));
      turn++;
      System.gc();
    }
    stop = true;
    for (Thread thread : threads) {
      thread.join();
    }
    double took = (System.nanoTime() - begin) / 1e9;
    String collector = ManagementFactory.getGarbageCollectorMXBeans().get(0).getName();
    System.out.printf(
        "{\"operations\": %d, \"seconds\": %.6f, \"rate\": %.3f, \"wrong\": %d, \"collector\": \"%s\"}%n",
        DONE.get(), took, DONE.get() / took, WRONG.get(), collector);
    if (WRONG.get() > 0) {
      System.err.printf("Churn: %d times wrong data%n", WRONG.get());
      System.exit(1);
    }
  }
}
