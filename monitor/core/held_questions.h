/// \file
/// Questions of agents that a person may answer here as well as where the agent runs.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/person_answer.h"
#include "watchdog/result.h"

namespace watchdog::monitor {

/// The questions that hooks hold open at this moment. They live as long as their connections, so
/// nothing is stored. The first answer counts. Thread-safe.
class HeldQuestions {
 public:
  /// Gets the answer, or nothing if there will be none here. Called at most once, from any thread.
  using Answered = std::function<void(std::optional<PersonAnswer>)>;

  /// Keeps a question until it is answered or released. Gives its id; empty: there are too many.
  /// REQUIRES: the id is like no other.
  [[nodiscard]] std::string hold(HeldQuestion question, Answered answered);
  /// Returns the question that the session asked first; nothing: it asks none.
  [[nodiscard]] std::optional<HeldQuestion> of(std::string_view session) const;
  /// Returns the question of that id; nothing: it is not open.
  [[nodiscard]] std::optional<HeldQuestion> held(std::string_view session,
                                                 std::string_view id) const;
  /// Answers the question of `id`, which a person saw before: another one of the session is not
  /// meant. Gives the question. Errors: `not_found`: it is not held; `conflict`: it was answered
  /// before; `invalid`: the answer is none to this question.
  [[nodiscard]] Result<HeldQuestion> answer(std::string_view session, std::string_view id,
                                            PersonAnswer answer);
  /// The question is answered elsewhere, or its hook is gone.
  void release(const std::string& id);

 private:
  struct Held {
    HeldQuestion question;
    Answered answered;
  };
  /// An answer that was given here, for those who come late.
  struct Given {
    std::string session;
    std::string id;
    std::string words;
  };

  mutable std::mutex mutex_;
  std::vector<Held> held_;    ///< The oldest first.
  std::vector<Given> given_;  ///< The oldest first; bounded.
};

/// Adds the question to a JSON object about its session, as its member `question`.
[[nodiscard]] std::string with_question(std::string object,
                                        const std::optional<HeldQuestion>& question);

}  // namespace watchdog::monitor
