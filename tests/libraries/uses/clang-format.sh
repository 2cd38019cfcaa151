printf 'int main(){if(1){return 2;}}\n' >a.c
clang-format --style=Google a.c
clang-format --dry-run --Werror a.c 2>/dev/null || echo "status $?"
