/// \file
/// Finds the new parts of a request, compared with its session's earlier requests and answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "llm/model_request.h"

namespace watchdog::monitor {

/// The new parts of a request. A plain value.
struct News {
  std::uint64_t thread = 0;        ///< Which of the session's threads it belongs to.
  std::vector<ToolRequest> calls;  ///< That only its results prove: the answer was not read.
  std::vector<ToolAnswer> results;
  std::string words;        ///< All else that is new.
  bool compacted = false;   ///< The agent forgot what was before.
  bool redirected = false;  ///< It is the latest request, asked at another address.
  bool repeated = false;    ///< It is the thread's latest request once more, and
  bool answered = false;    ///< that one had got its whole answer, or
  bool calling = false;     ///< one that asked for calls.
};

/// The memory of a session: for each of its newest threads, digests and open calls. An agent has
/// one thread for each history that it sends: its own, and those of helpers that share its session.
/// At most some 50 KiB. Use from one thread at a time.
class Conversation {
 public:
  static constexpr std::size_t threads_max = 8;
  static constexpr std::size_t calls_max = 32;  ///< Open ones of a thread.

  [[nodiscard]] News ask(const ModelRequest& request);

  enum class Answer : std::uint8_t {
    none,       ///< there was none, or half of one
    elsewhere,  ///< the server named another address
    unread,     ///< its text is not known
    whole
  };
  /// The thread's request is over. Calls without an id get one, made of `request_name`.
  void answer(std::uint64_t thread, Answer answer, std::vector<ToolRequest>& calls,
              const std::string& request_name);

  /// Some results did not come yet; of any thread but one.
  [[nodiscard]] bool has_open_calls(std::uint64_t but_thread = 0) const;

 private:
  struct Call {
    std::string id;
    std::string name;
    bool is_ours = false;  ///< The API gave it no id.
  };
  struct Thread {
    std::uint64_t number = 0;
    std::uint64_t setup = 0;   ///< Of its tools, or system prompt.
    std::uint64_t first = 0;   ///< Its first message; of its latest request:
    std::uint64_t last = 0;    ///< the last message,
    std::uint64_t said = 0;    ///< the agent's latest words,
    std::uint64_t newest = 0;  ///< what is not answered yet,
    std::size_t newest_at = 0;
    std::size_t newest_count = 0;
    std::size_t messages = 0;
    int asking = 0;  ///< Requests that are not over.
    Answer latest = Answer::none;
    bool asked_calls = false;
    std::vector<Call> calls;
    std::size_t begun = 0;  ///< Messages of its first request.
  };

  Thread& thread_of(const ModelRequest& request, News& news);
  static bool is_shortened(const Thread& thread, const ModelRequest& request);
  static bool has_lost_answers(const Thread& thread, const ModelRequest& request);
  static void add_results(Thread& thread, const ModelRequest& request, std::size_t from,
                          News& news);
  static bool close(Thread& thread, ToolAnswer& result);

  std::list<Thread> threads_;  ///< The latest first.
  std::uint64_t next_ = 1;
};

}  // namespace watchdog::monitor
