// One thread sends what has to keep its order, and starts a thread for each request, because the
// client of HTTP blocks. The threads own the state with the object, so the end of this program
// waits for none of them. A reader that is slow stops them: they wait until the news were taken.
// Kept connections are never used again, because a stale one would need a second sending.
#include "cli/remote_server.h"

#include <openssl/evp.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

#include "core/sse_reader.h"
#include "mcp/peer.h"
#include "mcp/proxy/envelope.h"
#include "net/http_client.h"
#include "wrapper/file_descriptor.h"

namespace watchdog::monitor {
namespace {

using mcp::Envelope;
using mcp::Message;

constexpr std::size_t news_bytes_max = 8 * 1024 * 1024;
constexpr Millis notice_max{10'000};
constexpr Millis end_max{2'000};
constexpr std::chrono::seconds reopen_first{1};
constexpr std::chrono::seconds reopen_max{30};
/// A server that lost a connection may be ending. Its socket still takes connections for a moment,
/// and nobody would know whether a request on one of them ran.
constexpr std::chrono::milliseconds settle_time{100};
constexpr std::string_view event_stream = "text/event-stream";

/// A message on one line: line ends are blanks outside of its texts.
std::string on_one_line(std::string text) {
  std::ranges::replace_if(
      text, [](char letter) { return letter == '\n' || letter == '\r'; }, ' ');
  return text;
}

/// The value of a header, as 2026-07-28 has it.
std::string header_value(const std::string& text) {
  const bool is_plain =
      std::ranges::all_of(text, [](char letter) { return letter >= ' ' && letter <= '~'; });
  if (is_plain && !text.starts_with("=?base64?") && !text.starts_with(' ') && !text.ends_with(' '))
    return text;
  std::string encoded(4 * ((text.size() + 2) / 3) + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(encoded.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()),
                                   static_cast<int>(text.size()));
  encoded.resize(static_cast<std::size_t>(size));
  return "=?base64?" + encoded + "?=";
}

/// The parameter that the header `Mcp-Name` repeats; null: none.
const char* named_by(const std::string& method) {
  if (method == "tools/call" || method == "prompts/get") return "name";
  if (method == "resources/read") return "uri";
  return method.starts_with("tasks/") ? "taskId" : nullptr;
}

}  // namespace

struct RemoteServer::State {
  Options options;
  std::string target;
  HttpClient client;
  FileDescriptor readable;
  std::stop_source over;

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::string> messages;  ///< To be sent.
  std::vector<RemoteNews> news;
  std::size_t news_bytes = 0;
  std::map<std::string, std::stop_source> requests;  ///< Under way, by key.
  std::string session;
  std::string version;
  bool is_modern = false;
  bool has_stream = false;
  std::chrono::steady_clock::time_point settled_at;  ///< No request before.

  State(Options chosen, std::string path, HttpClient made)
      : options(std::move(chosen)),
        target(std::move(path)),
        client(std::move(made)),
        readable(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  void tell(RemoteNews made) {
    std::unique_lock guard(mutex);
    changed.wait(guard, [this] { return news_bytes < news_bytes_max || over.stop_requested(); });
    news_bytes += made.text.size();
    news.push_back(std::move(made));
    const std::uint64_t one = 1;
    (void)!::write(readable.get(), &one, sizeof one);
  }

  std::vector<std::pair<std::string, std::string>> headers_for(const Envelope* seen) {
    auto headers = options.headers;
    headers.emplace_back("Accept", seen == nullptr ? std::string(event_stream)
                                                   : "application/json, text/event-stream");
    headers.emplace_back("Accept-Encoding", "identity");
    if (seen != nullptr) headers.emplace_back("Content-Type", "application/json");
    const auto own = seen == nullptr ? "" : mcp::text_in(seen->meta(), mcp::meta_version);
    const std::lock_guard guard(mutex);
    if (!own.empty()) is_modern = true;
    if (const auto& stated = own.empty() ? version : own; !stated.empty())
      headers.emplace_back("MCP-Protocol-Version", header_value(stated));
    if (!session.empty()) headers.emplace_back("Mcp-Session-Id", header_value(session));
    if (!is_modern || seen == nullptr || seen->method.empty()) return headers;
    headers.emplace_back("Mcp-Method", header_value(seen->method));
    if (const auto* name = named_by(seen->method))
      headers.emplace_back("Mcp-Name", header_value(mcp::text_in(seen->params, name)));
    return headers;
  }

  /// Passes a message on. True: it answers the request of this key.
  bool deliver(std::string text, const std::string& key, bool begins = false) {
    text = on_one_line(std::move(text));
    const auto seen = mcp::envelope_of(text);
    const bool is_answer = seen && seen->kind == Message::Kind::response && seen->key() == key;
    if (is_answer && begins) {
      const std::lock_guard guard(mutex);
      version = mcp::text_in(seen->result, "protocolVersion");
    }
    tell({.kind = RemoteNews::Kind::message, .text = std::move(text)});
    return is_answer;
  }

  /// An answer as it comes in: a stream of events, or one document.
  struct Reading {
    SseReader events;
    std::string body;
    bool is_answered = false;
    bool is_too_long = false;
  };
  HttpSink sink_for(Reading& reading, const std::string& key, bool begins) {
    return [this, &reading, key, begins](const HttpHead& head, std::string_view piece) {
      if (begins) {
        const std::lock_guard guard(mutex);
        session = std::string(head.header("Mcp-Session-Id"));
      }
      if (!head.header("Content-Type").starts_with(event_stream)) {
        reading.is_too_long = reading.body.size() + piece.size() > mcp::proxied_bytes_max;
        if (!reading.is_too_long) reading.body += piece;
        return !reading.is_too_long;
      }
      (void)reading.events.feed(piece, [&](const SseRecord& record) {
        if (record.data.size() > mcp::proxied_bytes_max) {
          reading.is_too_long = true;
        } else if (!record.data.empty()) {
          reading.is_answered = deliver(record.data, key, begins) || reading.is_answered;
        }
        return true;
      });
      return true;
    };
  }

  void await_settling() {
    std::unique_lock guard(mutex);
    changed.wait_until(guard, settled_at, [this] {
      return over.stop_requested() || std::chrono::steady_clock::now() >= settled_at;
    });
  }

  void request(const std::string& message, const Envelope& seen, const std::stop_token& stop) {
    const auto key = seen.key();
    const bool begins = seen.method == "initialize";
    std::string used;
    {
      const std::lock_guard guard(mutex);
      used = session;
    }
    await_settling();
    Reading reading;
    const auto head = client.ask(
        {.method = "POST", .target = target, .headers = headers_for(&seen), .body = message},
        sink_for(reading, key, begins), stop);
    if (!head && head.error().trouble == HttpTrouble::lost) {
      const std::lock_guard guard(mutex);
      settled_at = std::chrono::steady_clock::now() + settle_time;
    }
    if (stop.stop_requested()) return;
    if (head && head->status == 404 && !used.empty())
      return tell({.kind = RemoteNews::Kind::expired, .text = used, .key = key});
    const auto first = reading.body.find_first_not_of(" \t\r\n");
    if (first != std::string::npos && reading.body[first] == '{')
      if (const auto answer = mcp::envelope_of(reading.body); answer && answer->key() == key)
        reading.is_answered = deliver(std::move(reading.body), key, begins);
    if (reading.is_answered) return;
    tell({.kind = RemoteNews::Kind::failed,
          .text = why(head, reading),
          .key = key,
          .may_have_run = may_have_run(head)});
  }

  /// False if no server got the request, or one refused it for what it is.
  static bool may_have_run(const Result<HttpHead, HttpFault>& head) {
    if (!head) {
      const auto trouble = head.error().trouble;
      return trouble != HttpTrouble::host_not_found && trouble != HttpTrouble::no_name_service &&
             trouble != HttpTrouble::refused && trouble != HttpTrouble::untrusted;
    }
    constexpr int request_timeout = 408;
    constexpr int client_closed = 499;
    return head->status < 400 || head->status >= 500 || head->status == request_timeout ||
           head->status == client_closed;
  }

  static std::string why(const Result<HttpHead, HttpFault>& head, const Reading& reading) {
    if (reading.is_too_long)
      return "the tool server sent more than " + std::to_string(mcp::proxied_bytes_max) + " bytes";
    if (!head) return "the tool server did not answer: " + head.error().message;
    if (head->status == 401 || head->status == 403)
      return "the tool server answered with HTTP status " + std::to_string(head->status) +
             ": give it a token by --header";
    if (head->status >= 300)
      return "the tool server answered with HTTP status " + std::to_string(head->status);
    return "the tool server ended its answer before the result";
  }

  /// A notification, or the client's answer to a question of the server.
  void notice(const std::string& message, const Envelope& seen) {
    (void)client.ask(
        {.method = "POST",
         .target = target,
         .headers = headers_for(&seen),
         .body = message,
         .at_most = notice_max},
        [](const HttpHead&, std::string_view) { return true; }, over.get_token());
    if (seen.method == "notifications/initialized") open_stream();
  }

  /// Messages of the server that belong to no request. A server need not offer it.
  void open_stream() {
    {
      const std::lock_guard guard(mutex);
      if (std::exchange(has_stream, true)) return;
    }
    std::thread([this, self = keeper.lock()] {
      auto pause = reopen_first;
      while (!over.stop_requested()) {
        Reading reading;
        const auto head =
            client.ask({.method = "GET", .target = target, .headers = headers_for(nullptr)},
                       sink_for(reading, "", false), over.get_token());
        if (head && head->status >= 400 && head->status < 500) break;
        std::unique_lock guard(mutex);
        changed.wait_for(guard, pause, [this] { return over.stop_requested(); });
        pause = std::min(2 * pause, reopen_max);
      }
      const std::lock_guard guard(mutex);
      has_stream = false;
    }).detach();
  }

  void begin_request(std::string message, Envelope seen) {
    std::stop_source stop;
    const auto key = seen.key();
    {
      const std::lock_guard guard(mutex);
      if (requests.size() < requests_max)
        requests.insert_or_assign(key, stop);
      else
        stop.request_stop();
    }
    if (stop.stop_requested())
      return tell({.kind = RemoteNews::Kind::failed,
                   .text = "too many requests are under way",
                   .key = key,
                   .may_have_run = false});
    std::thread([this, self = keeper.lock(), message = std::move(message), seen = std::move(seen),
                 token = stop.get_token(), key] {
      request(message, seen, token);
      const std::lock_guard guard(mutex);
      if (const auto own = requests.find(key);
          own != requests.end() && own->second.get_token() == token)
        requests.erase(own);
    }).detach();
  }

  /// Closing the connection is the cancel of HTTP. Older servers also want a message.
  void cancel(const std::string& message, const Envelope& seen) {
    bool is_told = false;
    {
      const std::lock_guard guard(mutex);
      const auto found = requests.find(mcp::member(seen.params, "requestId").dump());
      if (found != requests.end()) found->second.request_stop();
      is_told = is_modern;
    }
    if (!is_told) notice(message, seen);
  }

  void run() {
    while (true) {
      std::string message;
      {
        std::unique_lock guard(mutex);
        changed.wait(guard, [this] { return over.stop_requested() || !messages.empty(); });
        if (over.stop_requested()) return;
        message = std::move(messages.front());
        messages.pop_front();
      }
      auto seen = mcp::envelope_of(message);
      if (!seen) {
        // Nobody knows what it is; the server answers it or does not.
        notice(message, Envelope{});
      } else if (seen->kind == Message::Kind::request) {
        begin_request(std::move(message), std::move(*seen));
      } else if (seen->method == "notifications/cancelled") {
        cancel(message, *seen);
      } else {
        notice(message, *seen);
      }
    }
  }

  std::weak_ptr<State> keeper;
};

Result<std::unique_ptr<RemoteServer>> RemoteServer::to(Options options) {
  const auto url = url_from(options.url);
  if (!url) return url.error();
  auto client = HttpClient::to(*url, {.ca_file = options.ca_file, .idle_connections_max = 0});
  if (!client) return client.error();
  auto state = std::make_shared<State>(std::move(options), url->path.empty() ? "/" : url->path,
                                       std::move(*client));
  if (!state->readable)
    return Error{ErrorCode::exhausted, "no descriptor is left for the tool server"};
  state->keeper = state;
  // A request that hangs must not keep the program from ending. Each thread shares the state.
  std::thread([state] { state->run(); }).detach();
  return std::unique_ptr<RemoteServer>(new RemoteServer(std::move(state)));
}

RemoteServer::RemoteServer(std::shared_ptr<State> state) : state_(std::move(state)) {}

RemoteServer::~RemoteServer() {
  std::string session;
  {
    const std::lock_guard guard(state_->mutex);
    session = state_->session;
    for (auto& [key, stop] : state_->requests) stop.request_stop();
  }
  const auto headers = state_->headers_for(nullptr);
  state_->over.request_stop();
  state_->changed.notify_all();
  if (session.empty()) return;
  (void)state_->client.ask(
      {.method = "DELETE", .target = state_->target, .headers = headers, .at_most = end_max},
      [](const HttpHead&, std::string_view) { return true; });
}

void RemoteServer::send(std::string message) {
  const std::lock_guard guard(state_->mutex);
  state_->messages.push_back(std::move(message));
  state_->changed.notify_all();
}

int RemoteServer::news_fd() const {
  return state_->readable.get();
}

std::vector<RemoteNews> RemoteServer::drain() {
  std::uint64_t count = 0;
  (void)!::read(state_->readable.get(), &count, sizeof count);
  const std::lock_guard guard(state_->mutex);
  state_->news_bytes = 0;
  state_->changed.notify_all();
  return std::exchange(state_->news, {});
}

bool RemoteServer::forget(const std::string& session) {
  const std::lock_guard guard(state_->mutex);
  if (state_->session.empty() || state_->session != session) return false;
  state_->session.clear();
  state_->version.clear();
  return true;
}

}  // namespace watchdog::monitor
