/// \file
/// The summary of a session's repetition: bounded, independent of the session's length.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "watchdog/policy.h"
#include "watchdog/report.h"
#include "watchdog/session.h"

namespace watchdog {

/// Adds the `Marks` of a report's content as it was sent, as far as the content is there. No effect
/// on other kinds of reports, and the second time. Linear in the content, without recursion. Marks
/// are digests of 64 bits without a key: they show to everybody who can guess a whole text that it
/// was this one. Of a secret in the text only 8 bits count, so they confirm no guess of it.
void mark(Report& report);
/// The same for a content that was redacted already.
void mark_redacted(Report& report);
/// Returns true if enough of the content is kept to mark it when it is read. Then marks need not be
/// stored, if no secret was taken out of it.
[[nodiscard]] bool is_kept_whole(const Report& report, ContentLevel level);

/// An array whose length does not change. It takes 8 bytes beside its block, because a session
/// keeps many of them. Copies deeply. A plain value.
template <class T>
class Packed {
  static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= alignof(std::uint64_t));

 public:
  using value_type = T;  ///< For algorithms.

  Packed() = default;
  /// Copies the items; of more than 2^32 only the first ones.
  explicit Packed(std::span<const T> items) {
    const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(items.size(), UINT32_MAX));
    if (count == 0) return;
    block_.reset(new std::byte[offset + count * sizeof(T)]);
    std::memcpy(block_.get(), &count, sizeof count);
    std::memcpy(block_.get() + offset, items.data(), count * sizeof(T));
  }
  /// Copies the items.
  Packed(const std::vector<T>& items) : Packed(std::span<const T>(items)) {}
  /// Copies the items.
  Packed(const Packed& other) : Packed(std::span<const T>(other.begin(), other.size())) {}
  /// Copies the items.
  Packed& operator=(const Packed& other) {
    if (this != &other) *this = Packed(other);
    return *this;
  }
  Packed(Packed&&) noexcept = default;
  Packed& operator=(Packed&&) noexcept = default;
  ~Packed() = default;

  /// Returns the number of items.
  [[nodiscard]] std::size_t size() const noexcept {
    std::uint32_t count = 0;
    if (block_) std::memcpy(&count, block_.get(), sizeof count);
    return count;
  }
  /// Returns whether the array has no items.
  [[nodiscard]] bool empty() const noexcept { return !block_; }
  /// Returns the first item.
  [[nodiscard]] const T* begin() const noexcept {
    return block_ ? static_cast<const T*>(static_cast<const void*>(block_.get() + offset))
                  : nullptr;
  }
  /// Returns the first item.
  [[nodiscard]] T* begin() noexcept {
    return block_ ? static_cast<T*>(static_cast<void*>(block_.get() + offset)) : nullptr;
  }
  /// Returns the place behind the last item.
  [[nodiscard]] const T* end() const noexcept { return begin() + size(); }
  /// Returns the place behind the last item.
  [[nodiscard]] T* end() noexcept { return begin() + size(); }

 private:
  static constexpr std::size_t offset = std::max(sizeof(std::uint32_t), alignof(T));
  std::unique_ptr<std::byte[]> block_;  ///< The count, then the items. Null: there are none.
};

/// A short text, packed. A plain value.
class PackedText {
 public:
  PackedText() = default;
  /// Copies the text.
  PackedText(std::string_view text) : bytes_(std::span<const char>(text.data(), text.size())) {}
  /// Copies the text.
  PackedText(const std::string& text) : PackedText(std::string_view(text)) {}
  /// Copies the text.
  PackedText(const char* text) : PackedText(std::string_view(text)) {}

  /// Returns the text; valid until this changes.
  [[nodiscard]] operator std::string_view() const noexcept {
    return {bytes_.begin(), bytes_.size()};
  }
  /// Returns a copy of the text.
  [[nodiscard]] std::string str() const { return std::string(std::string_view(*this)); }
  /// Returns whether it has no text.
  [[nodiscard]] bool empty() const noexcept { return bytes_.empty(); }

  friend bool operator==(const PackedText& a, std::string_view b) noexcept {
    return std::string_view(a) == b;
  }

 private:
  Packed<char> bytes_;
};

/// A finished round: a call with its result, or several calls that ran at once.
struct Step {
  Seq seq = 0;                 ///< The event that finished the round.
  std::uint64_t call = 0;      ///< Tools and arguments.
  std::uint64_t result = 0;    ///< 0: none came.
  std::uint64_t exact = 0;     ///< Of the whole result by its source; 0: unknown.
  std::uint32_t tool = 0;      ///< Digest of the tool.
  bool failed = false;         ///< Its result is an error.
  bool informative = false;    ///< Its result says more than "done".
  bool blind = false;          ///< Its call or its result is not known: it confirms nothing.
  bool again = false;          ///< It repeated something.
  bool worded = false;         ///< Its arguments ask in words, as a search does.
  std::uint8_t exit_code = 0;  ///< The exit code of a failed command; 0: not known.
  float weight = 0;            ///< Its weight as a repeated pair of call and result.
  Packed<std::uint32_t>
      shingles{};  ///< Of its arguments, like the next one; the newest few steps only.
  Packed<Marks::Field> fields{};  ///< See above.

  /// Returns true for equal results: without what varies, or by the source's own digests.
  [[nodiscard]] bool same_result(const Step& other) const noexcept {
    return result == other.result || (exact != 0 && exact == other.exact);
  }
};

/// How often the same happened in a row.
struct Streak {
  std::int32_t count = 0;  ///< How often so far.
  Seq first = 0;           ///< The event of the first one.

  /// One more.
  void extend(Seq seq) noexcept {
    if (count++ == 0) first = seq;
  }
  /// So many fewer.
  void shorten(std::int32_t by) noexcept {
    count = count > by ? count - by : 0;
    if (count == 0) first = 0;
  }
  /// The first of a new streak.
  void restart(Seq seq) noexcept {
    count = 1;
    first = seq;
  }
};

/// Detects a cycle of one period. Each lap is compared with the first; one of three or more
/// elements may be missing.
class Cycle {
 public:
  static constexpr std::size_t period_max = 8;  ///< The longest period.
  /// The newest elements, the last at the end, up to `period_max`.
  using Recent = std::vector<std::pair<std::uint64_t, Seq>>;

  /// Adds the newest element of `recent`.
  void add(const Recent& recent, std::size_t period) noexcept;

  std::array<std::uint32_t, period_max> lap{};  ///< The lower halves of the first lap's digests.
  std::int32_t laps = 0;                        ///< Complete ones, the first among them.
  std::uint8_t at = 0;                          ///< Index of the expected element of the lap.
  bool missed = false;                          ///< This lap already misses an element.
  Seq first = 0;                                ///< The event where the first lap began.
};

/// Cycles of some periods over one sequence.
class Cycles {
 public:
  /// Adds the next element of the sequence, for all periods in the range.
  void add(std::uint64_t digest, Seq seq, std::size_t period_min, std::size_t period_max);
  /// Forgets everything.
  void clear() noexcept { *this = {}; }
  /// Returns the cycle with the most laps, the shortest of several; null without two laps.
  [[nodiscard]] const Cycle* longest() const noexcept;

  Cycle::Recent recent;          ///< The newest elements.
  std::vector<Cycle> by_period;  ///< Empty until something was added.
};

/// The newest digests of a kind, each once.
class Known {
 public:
  static constexpr std::size_t digests_max = 256;  ///< Digests that are kept.
  /// Adds a digest. Returns true if it is new.
  bool add(std::uint64_t digest) { return visit(digest) == 0; }
  /// Adds a digest. Returns how often it was added before: 0, 1, or 2 for all higher counts.
  int visit(std::uint64_t digest);
  /// Returns true if the digest is known.
  [[nodiscard]] bool has(std::uint64_t digest) const noexcept;

  /// Their upper 31 bits, and one bit that says that the digest was added more than once.
  std::vector<std::uint32_t> digests;
  std::uint32_t at = 0;  ///< Index of the next one once there are `digests_max`.
};

/// Calls that run at once. They count as one step.
struct Round {
  std::uint32_t number = 0;            ///< Its number, from 1.
  std::int32_t open = 0;               ///< Calls without a result.
  std::int32_t finished = 0;           ///< Calls with a result.
  Step sum{};                          ///< The step that the calls make together.
  bool malformed = false;              ///< One of its calls was malformed.
  bool unreachable = false;            ///< One of its errors was of a gateway or of a limit.
  ToolUse use = ToolUse::ordinary;     ///< How it counts.
  std::vector<std::uint64_t> calls{};  ///< Different ones; at most 16.
};

/// Counts about messages; restored when an answer is requested again.
struct MessageRepetition {
  std::uint64_t newest = 0;  ///< Digest of the newest message.
  Streak same{};             ///< The same message.
  Streak any{};              ///< Any messages.
  Streak text_repeats{};     ///< Texts that repeat themselves.
};

/// How much of an agent's messages was said before: samples of the words of the newest ones.
struct ProseRepetition {
  static constexpr std::size_t words_max = 256;  ///< Digests that are kept: 10 messages or more.
  std::vector<std::uint16_t> words{};            ///< Each once; the oldest one gives way.
  std::uint8_t at = 0;  ///< Index of the oldest, once there are `words_max`.
  Streak restated{};    ///< Messages with little new; new ones subtract.
  Streak before{};      ///< The same before the newest message.

  /// Adds a message's sample. Returns how much of it is known, 0 … 1.
  double add(const std::vector<std::uint32_t>& sample);
};

/// A call that fails in the same way each time, whatever is done between. Digests are cut.
struct SameFailure {
  std::uint32_t call = 0;    ///< The failing call, the newest of all that failed more than once.
  std::uint32_t result = 0;  ///< Its failure.
  std::int32_t since = 0;    ///< Rounds since then.
  Streak times{};            ///< How often.
};

/// Turns and requests that come again without work between them.
struct TurnRepetition {
  Streak stops{};             ///< Ends of the turn that a hook of the user refused.
  Streak requests{};          ///< Requests to the model that were answered before.
  Streak failures{};          ///< Turns that ended with the same error.
  std::uint64_t failure = 0;  ///< Digest of that error.
  Streak laps{};              ///< Compactions after which the agent began as it had before.
  bool begins = false;        ///< The next step is the first one after a compaction.

  /// Returns the longest of them.
  [[nodiscard]] const Streak& longest() const noexcept;
};

/// A confirmed repetition, kept until enough is new.
struct Alarm {
  Pattern pattern = Pattern::none;  ///< The pattern; `none`: there is no alarm.
  Seq first = 0;                    ///< The event where it began.
  Seq last = 0;                     ///< Its newest event.
  double count = 0;                 ///< Its count then.
  std::int32_t recovered = 0;       ///< New calls since; a new state counts as two.
};

/// The severity of a finding.
enum class Level : std::uint8_t { none, suspect, stuck };

/// A pattern that was found, and its evidence. A plain value.
struct Finding {
  Pattern pattern = Pattern::none;  ///< The pattern.
  Level level = Level::none;        ///< How severe it is.
  double count = 0;                 ///< Its count; see Policy::patterns.
  Seq first = 0;                    ///< The event where it began,
  Seq last = 0;                     ///< and its newest event.
  bool conclusive = true;  ///< False: no confirmation can make more of it than a suspicion.
  bool graded = false;     ///< True: only a model or the agent itself can confirm it.
};

/// How a call counts, by its tool's rule.
struct CallMark {
  std::uint64_t call = 0;           ///< Digest of tool and arguments.
  std::uint32_t tool = 0;           ///< Digest of the tool.
  std::uint32_t round = 0;          ///< 0: it does not count.
  ToolUse use = ToolUse::ordinary;  ///< How its tool's calls count.
  bool malformed = false;           ///< Its tool is unknown or its arguments do not parse.
  bool blind = false;               ///< Its arguments are not known.
  bool twin = false;                ///< The same call runs in this round already.
};

/// Returns the mark of a result whose call is not known.
[[nodiscard]] CallMark unknown_call(std::string_view tool);

/// All that is remembered of a session to find repetition. A plain value of at most some 8 KiB.
class Repetition {
 public:
  static constexpr std::size_t compared_max = 8;  ///< Steps that keep their samples of arguments.
  static constexpr std::size_t steps_max = 20;    ///< Steps that are kept.

  /// Folds in the start of a call; returns how it counts.
  [[nodiscard]] CallMark begin_call(const Report& report, Seq seq, const Policy& policy);
  /// Folds in the result of a call that `begin_call` marked.
  void finish_call(const CallMark& call, const Report& result, Seq seq, const Policy& policy);
  /// Folds in a result whose call is not known. An uninformative one is not a step.
  void fold_result(const Report& result, Seq seq, const Policy& policy);
  /// Drops a call whose result will not come.
  void drop_call(const CallMark& call, Seq seq, const Policy& policy);
  /// Records a timeout. Returns true for the first one of this tool with these arguments.
  [[nodiscard]] bool add_timeout(const CallMark& call);
  /// Folds in a change of state with data.
  void fold_state(const Marks& marks, Seq seq, const Policy& policy);
  /// Folds in a change of state without data.
  void fold_bare_state(Seq seq, const Policy& policy);
  /// `marks` may be null.
  void fold_message(std::string_view role, const Marks* marks, Seq seq, const Policy& policy);
  /// Folds in a sign that a text repeats itself.
  void fold_text_repetition(Seq seq);
  /// Folds in a compaction of the context.
  void fold_compaction(Seq seq);
  /// Revokes the newest answer, because it is requested again. `name`: see `asked_again`.
  void fold_retry(std::string_view name, Seq seq);
  /// Folds in an end of the turn that a hook of the user refused.
  void fold_refused_stop(Seq seq);
  /// Folds in a turn that ended with an error.
  void fold_failed_turn(std::string_view error, Seq seq);
  /// Starts again after a user's input; known steps stay known.
  void fold_user_input(Seq seq);

  /// Returns the worst present finding. Confirmed ones stay until enough is new.
  [[nodiscard]] Finding finding(const Policy& policy) const;
  /// Keeps a confirmed repetition.
  void confirm(const Finding& found);

  std::vector<Step> steps;  ///< Since the newest new state; oldest first.
  double score = 0;         ///< Of `repeated_calls`.
  double evidence = 0;      ///< Of the newest step: the amount that it adds to the score.
  bool echo = false;        ///< The newest step repeats the one right before it.
  /// Of `same_call`.
  Streak same_result;  // same_call
  /// Of `same_failing_call`.
  Streak same_error;  // same_failing_call
  /// Of `same_error`.
  Streak thrash;  // same_error
  /// Of `invalid_calls`.
  Streak unparsed;  // invalid_calls
  /// Of `repeated_compactions`.
  Streak compactions;  // repeated_compactions
  /// Of `nothing_new`.
  Streak barren;  // nothing_new
  Streak loop;    ///< Calls of the present repetition, its first lap included.
  /// Rounds seen twice before, with new ones between; each new one subtracts.
  Streak circling;  // nothing_new
  /// Of `rephrased_calls`.
  Streak rephrased;  // rephrased_calls
  /// Of `same_failure`.
  SameFailure failure;  // same_failure
  /// Of `restated_text`.
  ProseRepetition prose;  // restated_text
  /// Of `cycle_of_calls`.
  Cycles rounds;  // cycle_of_calls
  /// Of `recurring_states`.
  Cycles states;         // recurring_states
  bool stepped = false;  ///< The newest event was a round, or an informative state.
  /// Of `same_message`, `messages_only` and `repeated_text`.
  MessageRepetition messages;       // same_message, messages_only, repeated_text
  MessageRepetition before_answer;  ///< The same before the newest message.
  Known known_steps;                ///< Steps of this session.
  Known known_states;               ///< States of this session.
  Round round;                      ///< The calls under way.
  bool graced = false;              ///< A compaction was forgiven since the newest new step.
  bool novel = false;               ///< The newest event was something new.
  Seq state_seq = 0;                ///< The newest change of state that was new, or had no data.
  Alarm alarm;                      ///< The confirmed repetition.
  std::string tool;                 ///< The newest finished call's, its first 64 bytes.
  TurnRepetition turns;             ///< Of `repeated_turns`.
  Streak looks;                     ///< Calls that waited for something, and saw nothing new.
  std::int32_t hurried = 0;         ///< Those of them that came too fast to be a wait.
  bool is_hurried = false;          ///< The result that is folded in next came so fast.
  Instant finished_at{};            ///< When the newest call finished.

 private:
  void fold_step(Step step, ToolUse use, bool malformed, const Policy& policy);
  void fold_graded(const Step& step, int visits, bool is_second_pass,
                   const RepetitionWeights& weights);
  void fold_prose(const Marks& marks, Seq seq, const RepetitionWeights& weights);
  void complete_round(Seq seq, const Policy& policy);
  void forget_rounds();
  void quieten();
  void begin_anew();
  void recover(std::int32_t by, const Policy& policy);
};

/// Returns true if two rounds have different targets: their arguments have the same members and all
/// that differ are atomic; or they are commands that differ in one word.
[[nodiscard]] bool other_target(const Step& a, const Step& b) noexcept;

/// Returns the similarity of two samples of shingles, 0 … 1: the common ones divided by all.
[[nodiscard]] double similarity(std::span<const std::uint32_t> a,
                                std::span<const std::uint32_t> b) noexcept;

}  // namespace watchdog
