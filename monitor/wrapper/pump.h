/// \file
/// Passes on what comes out of one file to another, as fast as it comes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <thread>

#include "wrapper/file_descriptor.h"

namespace watchdog::monitor {

/// Why a pump stopped. A plain value.
struct PumpEnd {
  enum class Kind : std::uint8_t {
    runs,          ///< it has not stopped
    writers_left,  ///< nobody can write any more, and all is passed on
    reader_left,   ///< the receiver's reader is gone
    failed,        ///< the receiver refuses what is written: errno
    held           ///< it was drained; a process may still write, but was quiet or took too long
  };
  Kind kind = Kind::runs;
  int number = 0;  ///< Of `failed`.
};

/// Runs on its own thread, because the reader of the output may be slow. Use from one thread at a
/// time.
class Pump {
 public:
  /// Called on the pump's thread with each piece, before it is passed on; at the end with none.
  using Tap = std::function<void(std::string_view bytes)>;

  /// `to` is the caller's. If nothing more can be written to it, `from` is closed, so that its
  /// writers notice.
  Pump(FileDescriptor from, int to, Tap tap);
  /// Waits until what had been read is passed on.
  ~Pump();
  Pump(const Pump&) = delete;
  Pump& operator=(const Pump&) = delete;

  /// From now on a quiet second ends it, or ten seconds in all.
  void drain();
  /// From now on it is not waited for, and the tap is not called: this process is about to end.
  void give_up();
  /// Readable once it has stopped, by itself or because it was asked to.
  [[nodiscard]] int stopped_fd() const;
  /// REQUIRES: it has stopped.
  [[nodiscard]] PumpEnd end() const;
  /// The file that it read; nothing that came was left out. REQUIRES: it is held.
  [[nodiscard]] FileDescriptor extract_source();

 private:
  struct State;
  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace watchdog::monitor
