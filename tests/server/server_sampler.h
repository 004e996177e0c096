/// \file
/// Looks at a simulated server as a prober looks at a real one: at what can be seen from where it
/// is, and when.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "server/server_evidence.h"
#include "support/simulated_server.h"

namespace watchdog::test {

/// From where one looks. A plain value.
struct Standpoint {
  bool is_local = true;  ///< Its process can be seen.
  bool has_slots = true;
  bool has_metrics = false;
  bool notices_loss = true;  ///< A connection that broke is seen to be broken.
};

/// Use from one thread at a time.
class ServerSampler {
 public:
  /// Gets each piece that an open request's connection is seen to get.
  using FindingSink = std::function<void(std::uint64_t request, const Piece& piece)>;

  ServerSampler(SimulatedServer& server, Standpoint from, FindingSink sink = {})
      : server_(server), from_(from), sink_(std::move(sink)) {}

  void opened(std::uint64_t request, bool stream = true);
  /// Takes what the connections of the open requests got by now, as looks do too.
  void hear();
  /// One look, now; with questions only if it `may_ask`. One that is not answered takes 2 s.
  /// Requests that are over by then are not among the open ones.
  [[nodiscard]] std::vector<ServerFinding> look(bool may_ask = true);

  [[nodiscard]] bool is_open(std::uint64_t request) const { return open_.contains(request); }
  /// The latest look saw something move.
  [[nodiscard]] bool has_changed() const { return changed_; }
  /// At the latest look a question was without an answer.
  [[nodiscard]] bool is_unanswered() const {
    return last_.reachable == Asked::waiting || last_.slots == Asked::waiting || last_.stopped != 0;
  }
  /// The latest look was more than one at the process.
  [[nodiscard]] bool has_asked() const { return asked_; }

 private:
  [[nodiscard]] std::optional<ServerView> answer_to(std::optional<std::uint64_t>& asked,
                                                    Question question);
  void ask_all(ServerSample& sample);
  void ask_slots(ServerSample& sample);
  void ask_metrics(ServerSample& sample);
  void see_process(ServerSample& sample);

  SimulatedServer& server_;
  Standpoint from_;
  FindingSink sink_;
  ServerWatch watch_;
  std::map<RequestId, RequestSample> open_;
  ServerSample last_;
  std::optional<std::uint64_t> health_, slots_, metrics_;  // asked, and not answered
  Instant slots_since_{};
  Instant metrics_due_{};
  std::optional<std::int64_t> process_;  // which one it is
  bool heard_ = false;                   // something, since the look before
  bool changed_ = false, asked_ = false;
  Asked reached_ = Asked::unasked;  // by the latest question
};

}  // namespace watchdog::test
