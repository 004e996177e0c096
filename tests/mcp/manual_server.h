/// \file
/// An MCP server without threads: the test runs its steps, moves its time, and answers its
/// questions.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mcp/peer.h"

namespace watchdog::test {

using monitor::mcp::Answer;
using monitor::mcp::json;
using monitor::mcp::Question;

class ManualLoop final : public monitor::mcp::Loop {
 public:
  void post(std::function<void()> step) override { steps_.push_back(std::move(step)); }
  void after(Millis time, std::function<void()> step) override {
    later_.emplace(now_ + time, std::move(step));
  }
  [[nodiscard]] WallTime wall() const override {
    return WallTime{Millis{1'700'000'000'000}} + now_;
  }

  void run() {
    while (!steps_.empty()) {
      const auto step = std::move(steps_.front());
      steps_.pop_front();
      step();
    }
  }
  void pass(Millis time) {
    const auto end = now_ + time;
    run();
    while (!later_.empty() && later_.begin()->first <= end) {
      now_ = later_.begin()->first;
      steps_.push_back(std::move(later_.extract(later_.begin()).mapped()));
      run();
    }
    now_ = end;
  }

 private:
  std::deque<std::function<void()>> steps_;
  std::multimap<Millis, std::function<void()>> later_;
  Millis now_{};
};

/// Answers from a table of targets, and records the questions.
class ManualSource final : public monitor::mcp::Source {
 public:
  struct Stream {
    std::string session;
    Listener listener;
    bool is_open = true;
  };
  class Open final : public monitor::mcp::Following {
   public:
    explicit Open(std::shared_ptr<Stream> stream) : stream_(std::move(stream)) {}
    ~Open() override { stream_->is_open = false; }

   private:
    std::shared_ptr<Stream> stream_;
  };

  [[nodiscard]] std::string owner() const override { return name; }
  void ask(Question question, std::function<void(Answer)> done) override {
    questions.push_back(question);
    if (is_silent) return held.push_back(std::move(done));
    for (const auto& [begin, answer] : answers)
      if (question.target.starts_with(begin)) return done(answer);
    done({.status = 404, .body = R"({"error":{"message":"there is no such thing"}})"});
  }
  [[nodiscard]] std::unique_ptr<monitor::mcp::Following> follow(const std::string& session,
                                                                Listener listener) override {
    streams.push_back(std::make_shared<Stream>(Stream{session, std::move(listener)}));
    return std::make_unique<Open>(streams.back());
  }
  [[nodiscard]] std::size_t open_streams() const {
    std::size_t count = 0;
    for (const auto& stream : streams) count += stream->is_open ? 1 : 0;
    return count;
  }

  std::string name = "local";
  bool is_silent = false;  ///< Questions get no answer.
  std::vector<std::function<void(Answer)>> held;
  std::vector<std::pair<std::string, Answer>> answers;
  std::vector<Question> questions;
  std::vector<std::shared_ptr<Stream>> streams;
};

/// A progress document as far as the server reads it.
inline json document(const std::string& state, std::int64_t seq, json more = json::object()) {
  const bool ended = state == "completed" || state == "failed" || state == "cancelled";
  const bool works = state == "progressing" || state == "waiting" || state == "slow";
  json made = {
      {"sessionId", "s"},
      {"title", "task"},
      {"state", state},
      {"attention", works   ? "working"
                    : ended ? "resting"
                            : "needs_you"},
      {"health", ended || state == "needs_input" || state == "waiting" ? "progressing" : state},
      {"lifecycle", ended ? state : "running"},
      {"reason", "because it is " + state},
      {"outcome", nullptr},
      {"lastSeq", seq},
      {"stateSince", 1'700'000'000'000},
      {"labels", json::object()},
      {"tools", json::array()},
      {"evidence", json::array()},
      {"progress", {{"stateChanges", 1}, {"heartbeats", 2}}}};
  made.update(more);
  return made;
}

/// One client of such a server.
struct ManualServer {
  ManualServer() { open(); }
  ~ManualServer() {
    peer->close();
    source->held.clear();  // They hold what asked, which holds the source.
  }
  ManualServer(const ManualServer&) = delete;
  ManualServer& operator=(const ManualServer&) = delete;

  void open() {
    peer = std::make_shared<monitor::mcp::Peer>(
        context, source, [this](const json& message) { sent.push_back(message); });
  }
  /// Takes a line; its messages are in `sent`.
  void accept(const std::string& line) {
    const auto message = monitor::mcp::message_from(line);
    if (!message) {
      sent.push_back(monitor::mcp::response_of(message.error()));
      return;
    }
    (void)peer->accept(*message, source,
                       [this](const json& reply, bool) { sent.push_back(reply); });
    loop.run();
  }
  void request(const std::string& method, json params = json::object(), json id = 1) {
    accept(json{{"jsonrpc", "2.0"}, {"id", std::move(id)}, {"method", method}, {"params", params}}
               .dump());
  }
  /// A request of 2026-07-28.
  void modern(const std::string& method, json params = json::object(), bool tasks = false,
              json id = 1) {
    json capabilities = json::object();
    if (tasks) capabilities["extensions"][monitor::mcp::tasks_extension] = json::object();
    params["_meta"][monitor::mcp::meta_version] = "2026-07-28";
    params["_meta"][monitor::mcp::meta_capabilities] = capabilities;
    request(method, std::move(params), std::move(id));
  }
  void call(const std::string& tool, json arguments = json::object(), json more = json::object()) {
    json params = {{"name", tool}, {"arguments", std::move(arguments)}};
    params.update(more);
    request("tools/call", std::move(params));
  }
  void announce(const json& about) {
    for (const auto& stream : source->streams)
      if (stream->is_open) stream->listener.on_record("session", about.dump());
    loop.run();
  }
  [[nodiscard]] json last() const { return sent.empty() ? json() : sent.back(); }
  [[nodiscard]] json result() const { return last().value("result", json()); }
  [[nodiscard]] int code() const {
    return last().contains("error") ? last()["error"]["code"].get<int>() : 0;
  }
  /// The structured result of a tool.
  [[nodiscard]] json structured() const { return result().value("structuredContent", json()); }

  ManualLoop loop;
  monitor::mcp::ServerContext context{loop, "1.2.3"};
  std::shared_ptr<ManualSource> source = std::make_shared<ManualSource>();
  std::shared_ptr<monitor::mcp::Peer> peer;
  std::vector<json> sent;
};

}  // namespace watchdog::test
