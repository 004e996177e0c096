/// \file
/// Passes on what comes out of one file to another, as fast as it comes.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <thread>

#include "wrapper/file_descriptor.h"

namespace watchdog::monitor {

/// Runs on its own thread, because the reader of the output may be slow. Use from one thread at a
/// time.
class Pump {
 public:
  /// Called on the pump's thread with each piece, before it is passed on; at the end with none.
  using Tap = std::function<void(std::string_view bytes)>;

  /// `to` is the caller's. If its reader is gone, `from` is closed, so that its writers notice.
  Pump(FileDescriptor from, int to, Tap tap);
  /// Waits until what had been read is passed on.
  ~Pump();
  Pump(const Pump&) = delete;
  Pump& operator=(const Pump&) = delete;

  /// Takes what is there now, and then no more.
  void drain();
  /// From now on it is not waited for, and the tap is not called: this process is about to end.
  void give_up();
  /// Readable once it has stopped, by itself or because it was asked to.
  [[nodiscard]] int stopped_fd() const;
  /// Returns true if it stopped although a process may still write.
  [[nodiscard]] bool is_held() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace watchdog::monitor
