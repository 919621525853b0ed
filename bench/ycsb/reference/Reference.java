// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reference.java - what YCSB itself asks of a database
 *
 * What: runs the CoreWorkload class of YCSB with a database that only prints.
 *       Lines: "case NAME WORKLOAD DISTRIBUTION RECORDS OPERATIONS" before each
 *       case, then an operation each: its name, the key, the length of a scan.
 * Who:  generate.
 */
import java.io.BufferedOutputStream;
import java.io.PrintStream;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.Vector;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.Status;
import site.ycsb.measurements.Measurements;
import site.ycsb.workloads.CoreWorkload;

final class Reference {
	private static final PrintStream OUT = new PrintStream(
		new BufferedOutputStream(System.out, 1 << 20), false);

	/* A read of the same transaction belongs to the update after it. */
	private static final class Printer extends DB {
		private String pending;

		@Override
		public Status read(String table, String key, Set<String> fields,
				   Map<String, ByteIterator> result) {
			pending = key;
			return Status.OK;
		}

		@Override
		public Status scan(String table, String key, int count, Set<String> fields,
				   Vector<HashMap<String, ByteIterator>> result) {
			OUT.println("scan " + key + " " + count);
			return Status.OK;
		}

		@Override
		public Status update(String table, String key, Map<String, ByteIterator> values) {
			boolean both = key.equals(pending);

			pending = null;
			OUT.println((both ? "read-modify-write " : "update ") + key);
			return Status.OK;
		}

		@Override
		public Status insert(String table, String key, Map<String, ByteIterator> values) {
			OUT.println("insert " + key);
			return Status.OK;
		}

		@Override
		public Status delete(String table, String key) {
			throw new UnsupportedOperationException();
		}

		void end() {
			if (pending != null)
				OUT.println("read " + pending);
			pending = null;
		}
	}

	/* The published proportions; what is not named is none. */
	private static Properties proportions(String workload) {
		Properties p = new Properties();

		p.setProperty("readproportion", "0");
		p.setProperty("updateproportion", "0");
		switch (workload) {
		case "load":
			break;
		case "a":
			p.setProperty("readproportion", "0.5");
			p.setProperty("updateproportion", "0.5");
			break;
		case "b":
			p.setProperty("readproportion", "0.95");
			p.setProperty("updateproportion", "0.05");
			break;
		case "c":
			p.setProperty("readproportion", "1.0");
			break;
		case "d":
			p.setProperty("readproportion", "0.95");
			p.setProperty("insertproportion", "0.05");
			break;
		case "e":
			p.setProperty("scanproportion", "0.95");
			p.setProperty("insertproportion", "0.05");
			p.setProperty("maxscanlength", "100");
			p.setProperty("scanlengthdistribution", "uniform");
			break;
		case "f":
			p.setProperty("readproportion", "0.5");
			p.setProperty("readmodifywriteproportion", "0.5");
			break;
		default:
			throw new IllegalArgumentException(workload);
		}
		return p;
	}

	private static void run(String[] words) throws Exception {
		boolean load = words[1].equals("load");
		int operations = Integer.parseInt(words[4]);
		Properties p = proportions(words[1]);
		CoreWorkload workload;
		Printer printer = new Printer();

		p.setProperty("requestdistribution", words[2]);
		p.setProperty("recordcount", words[3]);
		p.setProperty("operationcount", words[4]);
		/* Values are not looked at. */
		p.setProperty("fieldcount", "1");
		p.setProperty("fieldlength", "1");
		Measurements.setProperties(p);
		workload = new CoreWorkload();
		workload.init(p);
		OUT.println("case " + String.join(" ", words));
		for (int i = 0; i < operations; i++) {
			boolean done = load ? workload.doInsert(printer, null) :
					      workload.doTransaction(printer, null);

			if (!done)
				throw new IllegalStateException("an operation failed");
			printer.end();
		}
	}

	/* Each argument is a case: its five words with blanks between. */
	public static void main(String[] cases) throws Exception {
		for (String words : cases)
			run(words.split(" "));
		OUT.flush();
	}
}
