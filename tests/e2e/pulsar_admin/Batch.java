package org.apache.pulsar.admin.cli;

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.util.Properties;

/**
 * Runs pulsar-admin many times in one JVM, as its own shell does: a command's start would cost more than the command.
 *
 * <p>Each line of the input is one run's arguments, separated by tabs. Answered by a line "exit code, length of stdout,
 * length of stderr", then by both. It is in pulsar-admin's package because {@code run} can be called from there only.
 */
public final class Batch {

    private Batch() {}

    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.setProperty("webServiceUrl", arguments[0]);
        PulsarAdminTool tool = new PulsarAdminTool(properties);
        PrintStream answers = System.out;
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = lines.readLine()) != null; ) {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            ByteArrayOutputStream err = new ByteArrayOutputStream();
            System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
            System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
            // It keeps those that it wrote to first.
            tool.commander.setOut(new PrintWriter(System.out, true, StandardCharsets.UTF_8));
            tool.commander.setErr(new PrintWriter(System.err, true, StandardCharsets.UTF_8));
            int exit = run(tool, line.split("\t", -1));
            answers.println(exit + " " + out.size() + " " + err.size());
            out.writeTo(answers);
            err.writeTo(answers);
            answers.flush();
        }
        // Pulsar's client leaves threads behind.
        System.exit(0);
    }

    private static int run(PulsarAdminTool tool, String[] arguments) {
        try {
            return tool.run(arguments) ? 0 : 1;
        } catch (Exception error) {
            error.printStackTrace();
            return 1;
        }
    }
}
