/// \file
/// Tool calls put together from fragments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/model_client.h"

namespace watchdog {

/// An answer with more calls is malformed.
inline constexpr std::size_t answer_calls_max = 1'000;

/// Takes calls as servers send them: in fragments or whole, with or without index and id. Use from
/// one thread at a time.
class CallAssembler {
 public:
  /// Of each call's arguments; of longer ones only a digest and their size remain, as an object.
  explicit CallAssembler(std::size_t arguments_bytes_max = SIZE_MAX)
      : arguments_bytes_max_(arguments_bytes_max) {}

  /// Returns what keeping it costs, in bytes.
  std::size_t add(std::optional<std::int64_t> index, std::string_view id, std::string_view name,
                  std::string_view arguments);

  [[nodiscard]] std::size_t size() const noexcept { return calls_.size(); }
  [[nodiscard]] bool has(std::string_view id) const { return by_id_.contains(id); }
  [[nodiscard]] bool has(std::int64_t index) const { return newest_by_index_.contains(index); }
  /// To be called once, at the end.
  [[nodiscard]] std::vector<ToolRequest> release();

 private:
  /// Finds whether a growing text is one complete object, by its brackets.
  class ObjectText {
   public:
    void grow(std::string_view piece);
    [[nodiscard]] bool is_whole() const noexcept { return state_ == State::whole; }

   private:
    enum class State : std::uint8_t { empty, begun, in_string, escaped, whole, other };
    void grow(char c);
    State state_ = State::empty;
    std::size_t depth_ = 0;
  };
  /// The facts about a call besides its content.
  struct CallPlace {
    std::optional<std::int64_t> index;
    ObjectText arguments{};
    std::uint64_t folded = 0;  ///< Digest of what was too long to keep, and
    std::size_t bytes = 0;     ///< how much that is.
  };

  [[nodiscard]] std::optional<std::size_t> known_place(std::optional<std::int64_t> index,
                                                       std::string_view id,
                                                       std::string_view name) const;
  void append(std::size_t at, std::string_view piece);

  std::size_t arguments_bytes_max_;
  std::vector<ToolRequest> calls_;
  std::vector<CallPlace> places_;                            ///< Of each call.
  std::map<std::int64_t, std::size_t> newest_by_index_;      ///< Calls.
  std::map<std::string, std::size_t, std::less<>> by_id_{};  ///< Calls.
};

}  // namespace watchdog
