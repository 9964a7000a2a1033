# HETEROSIS_LIBRARY=libmy_mlp.so ... prove -l; ../README.md says which libraries the variables name.
use v5.26;
use warnings;

use File::Temp qw(tempdir);
use Test::More;

use Heterosis::Library;

my $path    = $ENV{HETEROSIS_LIBRARY} // 'libmy_mlp.so';
my $mlp     = Heterosis::Library->new($path);
my $forward = $mlp->entry('forward');
my @x       = (0.5) x 512;

is $mlp->describe, 'forward(x: float32[1, 512]) -> (output: float32[1, 2])', 'it tells what it is';

my ($scores) = $forward->run( \@x );
my ($packed) = $forward->run_packed( pack 'f*', @x );
is_deeply [ unpack 'f*', $packed ], $scores, 'lists and packed bytes give the same';
isnt $scores->[0], 0, 'and something';
my $moved = pack 'x f*', @x;
substr $moved, 0, 1, '';
is $forward->run_packed($moved), $packed, 'bytes that begin at an odd address';
my ($again) = $forward->run( [ (1) x 512 ] );
isnt $again->[0], $scores->[0], 'other inputs, other results';
is_deeply [ unpack 'f*', $packed ], $scores, 'which leave the first ones alone';

sub fails(&$$) {
    my ( $work, $why, $name ) = @_;
    ok !eval { $work->(); 1 }, $name;
    like $@, $why, "$name: the message";
}

fails { $forward->run( [1] ) } qr/x: got 1 numbers; expected 512/, 'a short list';
fails { $forward->run } qr/got 0 inputs/,                            'no list';
fails { $forward->run_packed('abc') } qr/expected 2048 packed/,      'few bytes';
fails { $forward->run_packed(undef) } qr/expected 2048 packed/,      'nothing';
fails { $mlp->entry('backward') } qr/no entry 'backward'/,           'an unknown entry';

my $sized = Heterosis::Library->new( $ENV{HETEROSIS_SIZED} // 'libsized.so' )->entry;
is $sized->describe, 'forward(x: float32[n0, 512]) -> (output: float32[n0, 2])', 'it has a size';
my ($rows) = $sized->at(3)->run( [ (0.5) x ( 3 * 512 ) ] );
is_deeply [ @$rows[ 4, 5 ] ], [ @$rows[ 0, 1 ] ], 'and runs at three';
fails { $sized->run( \@x ) } qr/its sizes are not known/, 'no size';
fails { $sized->at } qr/got 0 sizes; expected \(n0\)/,     'none for it';
fails { $sized->at(0) } qr/forward at n0 = 0: .* n0 from 1 to .* export it with/,                  'a size that it does not take';

my $small = Heterosis::Library->new( $ENV{HETEROSIS_WHOLE} // 'libwhole.so' )->entry;
is_deeply $small->run( [ -64, 0, 63 ] ), [ -128, 0, 126 ], 'whole numbers';
for my $wrong ( 128, -129, 1.5, 'many', undef, 9**9**9 ) {
    fails { $small->run( [ 0, $wrong, 0 ] ) } qr/number 1 is .*, which is no whole number of int8/,
      'a number that int8 does not hold';
}

fails { Heterosis::Library->new( $ENV{HETEROSIS_OTHER} // 'libother.so' ) }
qr/is for another family of processors/, 'a library for other processors';

my $whole = do { local $/; open my $file, '<:raw', $path or die $!; <$file> };
my $place = tempdir( CLEANUP => 1 ) . '/libdamaged.so';
fails { Heterosis::Library->new($place) } qr/No such file/, 'no file';
my ( $flipped, $other ) = ( $whole, $whole );
substr $flipped, 64, 1, chr( 1 ^ ord substr $whole, 64, 1 );
substr $other, -16, 1, "\3";
for (
    [ '',                   qr/cut short/ ], [ substr( $whole, 0, -1 ), qr/cut short/ ],
    [ $flipped,             qr/damaged/ ],   [ substr( $whole, 4096 ),  qr/damaged/ ],
    [ $other,               qr/has version 3/ ],
  )
{
    my ( $content, $why ) = @$_;
    open my $file, '>:raw', $place or die $!;
    print {$file} $content;
    close $file;
    fails { Heterosis::Library->new($place) } $why, 'a damaged file of ' . length $content;
}

done_testing;
