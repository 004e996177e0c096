/// \file
/// All open calls between a client and its tool server, and what the proxy does about them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "mcp/proxy/given_up.h"
#include "mcp/proxy/own_tasks.h"
#include "mcp/proxy/proxied_call.h"
#include "mcp/proxy/server_line.h"

namespace watchdog::monitor::mcp {

/// Where messages of a call book go.
class CallBookEnds {
 public:
  CallBookEnds() = default;
  CallBookEnds(const CallBookEnds&) = delete;
  CallBookEnds& operator=(const CallBookEnds&) = delete;
  virtual ~CallBookEnds() = default;

  /// A message for the client, without an end of line.
  virtual void to_client(std::string message) = 0;
  virtual void to_server(std::string message) = 0;
  virtual void report(const CallOwner& owner, Report report) = 0;
  /// For the person who runs the server: on standard error.
  virtual void tell(const std::string& words) = 0;
};

/// Passes each message on as it came, and watches calls. It never sends a call twice. Each call has
/// a state of its own, so a stuck one delays no other. It knows no time: the caller passes it.
/// Use from one thread at a time.
class CallBook {
 public:
  static constexpr std::size_t requests_max = 4'096;
  /// A plain value.
  struct Options {
    std::optional<Millis> idle{120'000};  ///< Longest time without movement; empty: none.
    Millis task_after{20'000};            ///< Then a client that takes tasks gets one.
    Millis mute_after{20'000};      ///< Then an unanswered request of another kind is reported.
    std::size_t calls_max = 1'000;  ///< Open at a time; more are refused.
    std::string token_prefix = "watchdog";
    bool names_calls = false;  ///< Calls of which the agent names no session get ids.
    std::function<WallTime()> wall = [] { return system_clock().wall(); };
  };
  /// A plain value.
  struct Tally {
    std::string client{};      ///< Its name, as it says; empty: unknown.
    std::int64_t answers = 0;  ///< Of the server, to anything.
    std::int64_t calls = 0;
    std::int64_t given_up = 0;
    std::int64_t late = 0;       ///< Results of calls that were given up: dropped.
    std::int64_t swallowed = 0;  ///< Progress that only the proxy asked for.
    std::int64_t junk = 0;       ///< Other texts of the server than messages: dropped.
  };

  /// `ends` must outlive it.
  CallBook(CallBookEnds& ends, Options options);

  void from_client(std::string message, Instant now);
  void from_server(std::string message, Instant now);
  /// The processes of the server used CPU or disks since the last time.
  void server_worked(Instant now);
  /// No answer to this request will come. `key`: of its id; empty: the one that is open, if there
  /// is only one. `why`: a sentence without its end. `may_have_run`: false: the server did not get
  /// it, or refused it.
  void fail_request(std::string key, const std::string& why, bool may_have_run = true);
  /// Gives up calls whose time is over, and sends what is due. Call it by `next`.
  void tick(Instant now);
  /// How long until `tick` is due; nothing: no call is open.
  [[nodiscard]] std::optional<Millis> next(Instant now) const;
  /// Answers everything that is open with an error. `cause`: `the tool server exited with code 1`.
  void server_gone(const std::string& cause, Instant now);
  /// A new process of the server runs. A client of an older revision has begun with the former
  /// one; the book begins again on its behalf. Messages since the former's end wait for that.
  void server_restarted();

  /// Calls that the server works on, as far as is known.
  [[nodiscard]] std::size_t open() const { return calls_.size() + server_tasks_.size(); }
  /// Requests of the client that have no answer.
  [[nodiscard]] std::size_t waiting() const { return calls_.size() + asked_.size(); }
  /// Calls that were given up, and whose end is not known.
  [[nodiscard]] std::size_t lingering() const { return given_up_.size(); }
  [[nodiscard]] const Tally& tally() const { return tally_; }

 private:
  using Calls = std::map<std::string, ProxiedCall>;
  struct Asked {
    json id;
    std::string method;
    std::string task{};
    Instant begun{};
    bool is_told = false;  ///< The owner knows that it has no answer.
  };

  void on_request(const Envelope& seen, std::string message, Instant now);
  void begin_call(const Envelope& seen, std::string message, Instant now);
  [[nodiscard]] bool answer_own_task(const Envelope& seen, Instant now);
  void on_client_notice(const Envelope& seen, std::string message, Instant now);
  void on_response(const Envelope& seen, std::string message, Instant now);
  void on_server_notice(const Envelope& seen, std::string message, Instant now);
  void on_progress(const Envelope& seen, std::string message, Instant now);
  void on_task(const std::string& task, const json& state, Instant now);
  void end_call(Calls::iterator found, const Envelope& seen, std::string message, Instant now);
  void give_up(const std::string& key, ProxiedCall call, Instant now);
  void give_up_server_task(ProxiedCall call, Instant now);
  void pause_all(bool pauses, Instant now);

  CallBookEnds& ends_;
  const Options options_;
  Calls calls_;         ///< By the key of their request; the server has not answered them.
  Calls server_tasks_;  ///< By the id of a task of the server, which is not over.
  OwnTasks own_tasks_;
  std::map<std::string, Asked> asked_;         ///< Other requests of the client, by key.
  std::map<std::string, std::string> tokens_;  ///< Tokens for progress and the call's key.
  std::set<std::string> server_asked_;         ///< Requests of the server to the client.
  GivenUpCalls given_up_;
  ServerLine line_;
  Instant ticked_{};
  Tally tally_{};
};

}  // namespace watchdog::monitor::mcp
