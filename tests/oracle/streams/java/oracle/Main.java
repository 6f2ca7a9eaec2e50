package oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/** Reads one case from each line of standard input and writes what Kafka Streams makes of it, one line each. */
public final class Main {
    private Main() {}

    public static void main(String[] arguments) throws Exception {
        Path stateDirectory = Path.of(arguments[0]);
        ObjectMapper json = new ObjectMapper();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream results = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode spec = json.readTree(line);
            results.println(json.writeValueAsString(CaseRunner.run(json, spec, stateDirectory)));
            results.flush();
        }
    }
}
