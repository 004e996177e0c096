// An answer of the API is whole, or comes piece by piece. A long list has an end; its pieces are
// collected. A stream of changes has none; its records are passed on. Both are read in the loop,
// when they say that there is more.
#include "mcp/api_source.h"

#include <utility>

#include "core/sse_reader.h"

namespace watchdog::monitor::mcp {
namespace {

/// A longer list is not read: no tool asks for one.
constexpr std::size_t answer_bytes_max = 32U * 1024 * 1024;
/// A stream that failed to read tries again, and permissions are looked at again.
constexpr Millis look_again{5'000};

/// Reads a body that comes piece by piece, in the loop.
class PieceReader : public std::enable_shared_from_this<PieceReader> {
 public:
  PieceReader(Loop& loop, std::shared_ptr<BodySource> source,
              std::function<void(std::string_view)> sink, std::function<void(bool)> ended)
      : loop_(loop), source_(std::move(source)), sink_(std::move(sink)), ended_(std::move(ended)) {}

  void begin() {
    source_->begin(wake());
    pump();
    look();
  }
  void stop() {
    source_.reset();
    sink_ = nullptr;
    ended_ = nullptr;
  }

 private:
  std::function<void()> wake() {
    return [&loop = loop_, weak = weak_from_this()] {
      loop.post([weak] {
        if (const auto self = weak.lock()) self->pump();
      });
    };
  }

  void pump() {
    const auto self = shared_from_this();
    while (source_) {
      const auto pieces = source_->drain();
      for (const auto& piece : pieces)
        if (sink_) sink_(*piece);
      if (!source_) return;
      if (source_->state() != BodyState::open) return end(source_->state() == BodyState::complete);
      if (!source_->allowed()) return end(false);
      if (pieces.empty()) return;
    }
  }

  void look() {
    loop_.after(look_again, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (!self || !self->source_) return;
      self->pump();
      self->look();
    });
  }

  void end(bool complete) {
    const auto ended = std::exchange(ended_, nullptr);
    stop();
    if (ended) ended(complete);
  }

  Loop& loop_;
  std::shared_ptr<BodySource> source_;
  std::function<void(std::string_view)> sink_;
  std::function<void(bool)> ended_;
};

Answer broken() {
  return {.status = 503, .body = R"({"error":{"message":"the answer broke off; try again"}})"};
}

/// Passes the answer on when it is whole.
void collect(Loop& loop, Response response, std::function<void(Answer)> done) {
  if (!response.source) return done({.status = response.status, .body = std::move(response.body)});
  const auto text = std::make_shared<std::string>();
  const auto status = response.status;
  const auto reader = std::make_shared<std::shared_ptr<PieceReader>>();
  *reader = std::make_shared<PieceReader>(
      loop, std::move(response.source),
      [text](std::string_view piece) {
        if (text->size() <= answer_bytes_max) text->append(piece);
      },
      // It owns itself until the end.
      [reader, text, status, done = std::move(done)](bool complete) {
        const auto whole = complete && text->size() <= answer_bytes_max;
        done(whole ? Answer{.status = status, .body = std::move(*text)} : broken());
        reader->reset();
      });
  (*reader)->begin();
}

/// A stream, also before it is open.
struct OpenStream {
  Source::Listener listener;
  SseReader records{};
  std::shared_ptr<PieceReader> pieces{};

  void begin(Loop& loop, Response response, const std::weak_ptr<OpenStream>& own) {
    if (response.status != 200 || !response.source) {
      if (listener.ended)
        listener.ended({.status = response.status, .body = std::move(response.body)});
      return;
    }
    pieces = std::make_shared<PieceReader>(
        loop, std::move(response.source),
        [own](std::string_view piece) {
          const auto self = own.lock();
          if (!self) return;
          (void)self->records.feed(piece, [&self](const SseRecord& record) {
            if (self->listener.on_record) self->listener.on_record(record.event, record.data);
            return true;
          });
        },
        [own](bool) {
          const auto self = own.lock();
          if (self && self->listener.ended)
            self->listener.ended(
                {.status = 401,
                 .body = R"({"error":{"message":"the token is not valid any more"}})"});
        });
    pieces->begin();
  }
};

class StreamFollowing final : public Following {
 public:
  explicit StreamFollowing(std::shared_ptr<OpenStream> stream) : stream_(std::move(stream)) {}
  ~StreamFollowing() override {
    stream_->listener = {};
    if (stream_->pieces) stream_->pieces->stop();
  }

 private:
  std::shared_ptr<OpenStream> stream_;
};

}  // namespace

ApiSource::ApiSource(Api& api, Loop& loop, const Request& client, std::string owner)
    : api_(api),
      loop_(loop),
      client_{.host = client.host,
              .origin = client.origin,
              .authorization = client.authorization,
              .cookie = client.cookie,
              .fetch_site = client.fetch_site,
              .forwarded_for = client.forwarded_for,
              .peer = client.peer,
              .peer_port = client.peer_port,
              .own_port = client.own_port},
      owner_(std::move(owner)) {}

Request ApiSource::request(Method method, std::string target, std::string body) const {
  auto request = client_;
  request.method = method;
  request.target = std::move(target);
  request.content_type = "application/json";
  request.body_bytes = body.size();
  request.body = std::move(body);
  return request;
}

void ApiSource::ask(Question question, std::function<void(Answer)> done) {
  api_.handle(request(question.method, std::move(question.target), std::move(question.body)),
              [&loop = loop_, done = std::move(done)](Response response) {
                loop.post([&loop, done, response = std::move(response)]() mutable {
                  collect(loop, std::move(response), done);
                });
              });
}

std::unique_ptr<Following> ApiSource::follow(const std::string& session, Listener listener) {
  const auto stream = std::make_shared<OpenStream>(OpenStream{std::move(listener)});
  const std::weak_ptr<OpenStream> weak = stream;
  api_.handle(request(Method::get,
                      "/api/autonomous/" + (session.empty() ? "" : "sessions/" + session + "/") +
                          "stream?include=sessions",
                      {}),
              [&loop = loop_, weak](Response response) {
                loop.post([&loop, weak, response = std::move(response)]() mutable {
                  if (const auto open = weak.lock()) open->begin(loop, std::move(response), weak);
                });
              });
  return std::make_unique<StreamFollowing>(stream);
}

}  // namespace watchdog::monitor::mcp
