# case with patterns, fall through, and extended globs.
# Also as a cell of a context.
shopt -s extglob nocasematch
number='x+([0-9])' archive='*.@(tar|tgz)*'
for word in apple Banana x42 "" --flag photo.tar.gz; do
    case $word in
        [aA]*) echo "a-word $word" ;;
        banana) echo "fruit" ;&
        never) echo "fell through" ;;
        $number) echo "number" ;;
        "") echo "empty" ;;
        --*) echo "flag ${word#--}" ;;
        $archive) echo "archive ${word%%.*} ${word##*.}" ;;
    esac
done
