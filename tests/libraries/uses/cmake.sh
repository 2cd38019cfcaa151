# Configures and builds a project without a compiler, and runs its test.
cat >CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.20)
project(trial NONE)
add_custom_command(OUTPUT out.txt COMMAND ${CMAKE_COMMAND} -E echo built > out.txt)
add_custom_target(all_of_it ALL DEPENDS out.txt)
enable_testing()
add_test(NAME there COMMAND ${CMAKE_COMMAND} -E cat out.txt)
CMAKE
cmake -S . -B build -G Ninja -DCMAKE_MAKE_PROGRAM="$(command -v ninja)" >log
cmake --build build >log
cat build/out.txt
ctest --test-dir build 2>&1 | grep 'tests passed'
