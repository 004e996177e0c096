import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Base64;
import java.util.concurrent.Executors;
import java.util.zip.GZIPInputStream;

/** Asks by the HTTP client of the JDK, which offers HTTP/2 with its requests. Lines are those of raw_clients.py. */
public class RawClients {
  private static final Duration PATIENCE = Duration.ofSeconds(120);

  public static void main(String[] arguments) throws IOException {
    var client = HttpClient.newHttpClient();
    var pool = Executors.newCachedThreadPool();
    var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (var line = lines.readLine(); line != null; line = lines.readLine()) {
      var job = line.split("\t", 4);
      pool.submit(() -> ask(client, job[0], job[2], job[3]));
    }
    pool.shutdown();  // what is asked is answered
  }

  private static void ask(HttpClient client, String id, String url, String body) {
    var request = HttpRequest.newBuilder(URI.create(url)).timeout(PATIENCE).header("Content-Type", "application/json")
        .POST(BodyPublishers.ofString(body)).build();
    try {
      var answer = client.send(request, BodyHandlers.ofInputStream());
      try (var content = contentOf(answer)) {
        tell(id, answer.statusCode(), content.readAllBytes());
      }
    } catch (Exception error) {  // the test shows it
      tell(id, 0, error.toString().getBytes(StandardCharsets.UTF_8));
    }
  }

  private static InputStream contentOf(HttpResponse<InputStream> answer) throws IOException {
    var packed = answer.headers().firstValue("Content-Encoding").orElse("").equals("gzip");
    return packed ? new GZIPInputStream(answer.body()) : answer.body();
  }

  private static synchronized void tell(String id, int status, byte[] text) {
    System.out.println(id + "\t" + status + "\t" + Base64.getEncoder().encodeToString(text));
    System.out.flush();
  }
}
